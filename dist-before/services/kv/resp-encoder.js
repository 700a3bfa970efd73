/** Several commands as one contiguous payload. */
export function encodeCommands(commands) {
    if (commands.length === 1)
        return encodeCommand(commands[0]);
    const pieces = [];
    let text = '';
    for (const command of commands) {
        const payload = encodeCommand(command);
        if (typeof payload === 'string') {
            text += payload;
        }
        else {
            pieces.push(text, ...payload);
            text = '';
        }
    }
    if (pieces.length === 0)
        return text;
    pieces.push(text);
    return pieces;
}
export function encodeCommand(command) {
    let text = `*${command.length}\r\n`;
    let pieces;
    for (const argument of command) {
        if (typeof argument === 'string') {
            text += `$${Buffer.byteLength(argument)}\r\n${argument}\r\n`;
        }
        else {
            pieces ??= [];
            pieces.push(`${text}$${argument.length}\r\n`, argument);
            text = '\r\n';
        }
    }
    if (pieces === undefined)
        return text;
    pieces.push(text);
    return pieces;
}
//# sourceMappingURL=resp-encoder.js.map