/** Words of commands that users copy into a shell. */

/** The text as one word of a POSIX shell: as it is where the shell takes it so, else in single quotes. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
