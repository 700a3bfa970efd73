/** The gateway as this page reached it: one above the page, whatever prefix a proxy has put before both. */
export const GATEWAY = new URL('../', new URL('./', document.baseURI));

/** @param path of the gateway's own, such as `/kv/ping` */
export function gatewayUrl(path: string): string {
  return new URL(`.${path.startsWith('/') ? path : `/${path}`}`, GATEWAY).href;
}
