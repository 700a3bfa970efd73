/** A reply as it went out. */
export interface KeptReply {
  readonly status: number;
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** `none`: it was too long to be kept. */
  readonly encoding: 'utf8' | 'base64' | 'none';
}

/** A call that was begun, and its reply once there is one. */
export interface KeptCall {
  /** Tells one request from another. */
  readonly fingerprint: string;
  /** By then it has its reply, or nobody knows what became of it; ms since 1970. */
  readonly until: number;
  readonly reply?: KeptReply;
}

/** Calls that are done once at most, over all gateways, each for a window that begins with it. */
export interface KeptCalls {
  /** @returns the call that is there already; `undefined`: there was none, and this one now is */
  claim(id: string, call: KeptCall, windowMs: number): Promise<KeptCall | undefined>;
  /** Keeps the reply for what is left of the window. */
  finish(id: string, call: KeptCall): Promise<void>;
  /** It has changed nothing, and may be made again. */
  release(id: string): Promise<void>;
}

/** What is lost between two looks was over: a third finds it. */
const LOOKS = 3;

/** Puts the call there, or finds what is there. */
export async function claimed(
  put: () => Promise<boolean>,
  find: () => Promise<KeptCall | undefined>,
): Promise<KeptCall | undefined> {
  for (let looks = 0; looks < LOOKS; looks++) {
    if (await put()) return undefined;
    const found = await find();
    if (found !== undefined) return found;
  }
  throw new Error('a kept call is neither there nor away');
}
