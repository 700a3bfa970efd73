/** One argument of a command: text is sent as UTF-8, bytes as they are. */
export type Argument = string | Buffer;

/** A command in protocol order: its name, then its arguments. */
export type Command = readonly Argument[];

/** RESP2 requests ready to be written: one text, or pieces where a command holds bytes. */
export type Payload = string | readonly Argument[];

/** Several commands as one contiguous payload. */
export function encodeCommands(commands: readonly Command[]): Payload {
  if (commands.length === 1) return encodeCommand(commands[0] as Command);
  const pieces: Argument[] = [];
  let text = '';
  for (const command of commands) {
    const payload = encodeCommand(command);
    if (typeof payload === 'string') {
      text += payload;
    } else {
      pieces.push(text, ...payload);
      text = '';
    }
  }
  if (pieces.length === 0) return text;
  pieces.push(text);
  return pieces;
}

export function encodeCommand(command: Command): Payload {
  let text = `*${command.length}\r\n`;
  let pieces: Argument[] | undefined;
  for (const argument of command) {
    if (typeof argument === 'string') {
      text += `$${Buffer.byteLength(argument)}\r\n${argument}\r\n`;
    } else {
      pieces ??= [];
      pieces.push(`${text}$${argument.length}\r\n`, argument);
      text = '\r\n';
    }
  }
  if (pieces === undefined) return text;
  pieces.push(text);
  return pieces;
}
