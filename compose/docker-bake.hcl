# Both images for both kinds of processor, with provenance:
#   docker buildx bake --file compose/docker-bake.hcl --push
# VERSION, REVISION and REGISTRY come from the environment. `dev` is run while it is built (it fetches the backends'
# programs), so another processor than the builder's needs emulation (binfmt) or a builder of that kind; `portico` does not.
variable "REGISTRY" { default = "" }
variable "VERSION" { default = "unknown" }
variable "REVISION" { default = "unknown" }

group "default" { targets = ["portico", "dev"] }

target "common" {
  context    = "."
  dockerfile = "compose/Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  args       = { VERSION = VERSION, REVISION = REVISION }
  attest     = ["type=provenance,mode=max"]
}

target "portico" {
  inherits = ["common"]
  target   = "portico"
  tags     = ["${REGISTRY}portico:latest", "${REGISTRY}portico:${VERSION}"]
}

target "dev" {
  inherits = ["common"]
  target   = "dev"
  tags     = ["${REGISTRY}portico:dev", "${REGISTRY}portico:${VERSION}-dev"]
}
