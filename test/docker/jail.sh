#!/bin/sh
# Runs a program in a root file system of its own, as the only process that sees it: jail.sh ROOT "FOLDER ..." PROGRAM...
# The named folders of this system are seen at the same paths. A root that was only changed by chroot cannot start
# containers (pivot_root wants a mount), so the root is changed in a mount namespace.
set -eu
if [ "${JAILED:-}" != yes ]; then
  export JAILED=yes
  exec unshare --mount --propagation private -- /bin/sh "$0" "$@"
fi
root=$1
folders=$2
shift 2
mount --bind "$root" "$root"
cd "$root"
for folder in /dev /proc /sys /etc/resolv.conf $folders; do
  if [ -d "$folder" ]; then mkdir -p ".$folder"; else touch ".$folder"; fi
  mount --rbind "$folder" ".$folder"
done
mkdir -p .outside
pivot_root . .outside
umount -l /.outside
cd /
unset JAILED
exec "$@"
