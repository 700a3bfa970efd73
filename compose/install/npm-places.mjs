import { accessSync, constants, existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { stateDir } from '../state/profile.mjs';

/** Whether this user may write in a folder, or make it. */
function isWithinReach(folder) {
  if (!existsSync(folder)) return folder !== dirname(folder) && isWithinReach(dirname(folder));
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @returns {string | undefined} undefined for a user without a name whose environment does not say it either */
function home() {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

/**
 * npm keeps what it fetches in the home folder, and ends where there is none. A user without a name (`docker run --user
 * 12345`) has `/`, where he may not write, or no home at all.
 * @returns {Record<string, string>} variables for npm; none where it has a place of its own
 */
export function npmPlaces() {
  const folder = home();
  const cache = process.env.npm_config_cache ?? (folder && join(folder, '.npm'));
  if (folder && cache && isWithinReach(cache)) return {};
  return { HOME: folder ?? stateDir, npm_config_cache: join(stateDir, 'npm-cache') };
}
