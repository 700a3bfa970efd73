/**
 * The backends of one profile, however they run.
 * @typedef {object} BackendSet
 * @property {(names?: string[], progress?: (name: string, line: string) => void) => Promise<Record<string, StartResult>>} start
 *   installs what is missing and brings the named ones (default: all) up, in parallel; those that run are left alone
 * @property {(names: string[], progress: (name: string, line: string) => void) => Promise<void>} [fetch]
 *   brings what can be had before anything starts; never rejects
 * @property {(names?: string[]) => Promise<Record<string, string>>} stop
 * @property {(name: string) => Promise<void>} kill SIGKILL for all of its processes; returns when they are gone
 * @property {(name: string) => Promise<void>} pause connections stay open, nothing answers
 * @property {(name: string) => Promise<void>} resume
 * @property {() => Promise<Record<string, {running: boolean, paused: boolean, ready: boolean, pid?: number}>>} status
 * @property {() => Promise<void>} reset forgets all data; for when none runs
 * @property {(names?: string[]) => Record<string, string>} urls the addresses, as the gateway's variables
 *
 * @typedef {{state: 'running' | 'started' | 'failed', reason?: string, notes?: string[], ms: number}} StartResult
 *   notes: what the user should know although it runs
 */
