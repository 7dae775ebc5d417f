/**
 * What the programs of a local cluster inherit from the environment of who starts it: its components, drivers, the shims of
 * its pods. A terminal holds credentials of other things, and whatever runs here could read them: only what is listed passes.
 *
 * Not here: the environment of pods, which is as in Kubernetes (`pod-shim.ts`), and that of programs of the node, which
 * their `Host` sets. A credential plugin of a kubeconfig inherits everything, as in Kubernetes, and so does the
 * `--restart-cmd` of `driver check`: both are the user's own commands, run in the user's name.
 */

/** Variables that pass, and why. */
export const inheritedVariables: Readonly<Record<string, string>> = {
  PATH: "where mount, mkfs and node are found",
  HOME: "where drivers look for files of their own",
  TMPDIR: "where temporary files go",
  TZ: "times in logs",
  LANG: "language of messages",
  LANGUAGE: "language of messages",
  NODE_COMPILE_CACHE: "where compiled code is kept between runs",
  NODE_DISABLE_COMPILE_CACHE: "whether it is",
  NODE_EXTRA_CA_CERTS: "file of authorities that a driver trusts; its name is no secret",
  SSL_CERT_FILE: "the same, of programs that are not Node's",
  SSL_CERT_DIR: "the same",
  XDG_STATE_HOME: "where clusters live unless a flag says",
  LONGSHORE_UNPRIVILEGED: "directories and links in place of mounts",
  LONGSHORE_DEBUG: "stacks beside errors",
};

/**
 * The variables that a program of the cluster inherits: {@link inheritedVariables} and the parts of the locale.
 * NODE_OPTIONS is not among them: it makes every process load code or open a debugger, of which the second finds the port
 * taken. Proxies are not, since their addresses hold passwords.
 */
export function childEnvironment(from: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const inherited: Record<string, string> = {};
  for (const [name, value] of Object.entries(from)) {
    if (value === undefined) continue;
    if (Object.hasOwn(inheritedVariables, name) || /^LC_[A-Z]+$/.test(name)) inherited[name] = value;
  }
  return inherited;
}
