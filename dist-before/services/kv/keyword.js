/** Longer than any name of a command, subcommand or option. */
const LONGEST = 64;
/** The argument at `index` as upper-case text, for comparison with a keyword; empty when there is none or it is no keyword. */
export function keyword(command, index) {
    const argument = command[index];
    if (argument === undefined || argument.length > LONGEST)
        return '';
    return (typeof argument === 'string' ? argument : argument.toString('latin1')).toUpperCase();
}
//# sourceMappingURL=keyword.js.map