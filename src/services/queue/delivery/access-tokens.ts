import { AccessToken, oauthClient } from '../../../lib/outbound/access-token.js';
import { hostKey, ofHost, portOf } from '../../../lib/outbound/address-guard.js';
import type { Ways } from '../../../lib/outbound/connector.js';
import type { QueueSettings } from '../settings.js';

/** The access tokens of the destinations that want one. */
export class AccessTokens {
  private readonly tokens: ReadonlyMap<string, AccessToken>;

  constructor(destinations: QueueSettings['destinations'], ways: Ways, now: () => number) {
    this.tokens = new Map(
      destinations.flatMap(({ host, oauth }) => {
        const client = oauthClient(oauth);
        return host === null || client === undefined
          ? []
          : [[hostKey(host), new AccessToken(client, ways, now)] as const];
      }),
    );
  }

  /** That of whoever the URL is of, if one is wanted there. */
  at(url: URL): AccessToken | undefined {
    return this.tokens.size === 0 ? undefined : ofHost(this.tokens, url.hostname, portOf(url));
  }

  async close(): Promise<void> {
    await Promise.all([...this.tokens.values()].map((token) => token.close()));
  }
}
