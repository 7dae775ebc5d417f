/** Flags in the arguments of a container, in the form `--name=value`. Pure; what is not named stays as it is. */

/** The arguments with the flag set to the value, or without it; a flag that is there keeps its place. */
export function withFlag(
  args: readonly string[],
  name: string,
  value: string | undefined,
): readonly string[] {
  const at = args.findIndex((arg) => isFlag(arg, name));
  const others = args.filter((arg) => !isFlag(arg, name));
  if (value === undefined) return others;
  const flag = `--${name}=${value}`;
  return at === -1 ? [...others, flag] : [...others.slice(0, at), flag, ...others.slice(at)];
}

/** The members of a flag that is a list: `--name=a,b`. */
export function listOf(args: readonly string[], name: string): readonly string[] {
  const values = args.filter((arg) => isFlag(arg, name)).map((arg) => arg.slice(`--${name}=`.length));
  return values.flatMap((value) => value.split(",")).filter((one) => one !== "");
}

/** The arguments with these members in the flag; without it when there are none. */
export function withList(
  args: readonly string[],
  name: string,
  members: readonly string[],
): readonly string[] {
  return withFlag(args, name, members.length === 0 ? undefined : members.join(","));
}

/** `--feature-gates` with those of `own` on that are in `on`, and the others of `own` gone. */
export function withGates(
  args: readonly string[],
  own: readonly string[],
  on: readonly string[],
): readonly string[] {
  const others = listOf(args, "feature-gates").filter((entry) => !own.includes(entry.split("=", 1)[0] ?? ""));
  return withList(args, "feature-gates", [...others, ...on.map((gate) => `${gate}=true`)]);
}

function isFlag(arg: string, name: string): boolean {
  return arg === `--${name}` || arg.startsWith(`--${name}=`);
}
