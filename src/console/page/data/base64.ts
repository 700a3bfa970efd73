const decoder = new TextDecoder();

/** UTF-8 text of base64; bytes that are no text show as U+FFFD. */
export function textOf(base64: string): string {
  return decoder.decode(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
}

export function base64Of(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
