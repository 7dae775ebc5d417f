/**
 * The annotation on a CSINode that says which in-tree plugins this node has handed over to CSI.
 * Source: spec node-agent.md §2.4.
 */

/** The annotation's key. */
export const migratedPluginsAnnotation = "storage.alpha.kubernetes.io/migrated-plugins";

/** The names listed; an absent or empty annotation lists none. */
export function parseMigratedPlugins(value: string | undefined): ReadonlySet<string> {
  return new Set((value ?? "").split(",").filter((name) => name !== ""));
}

/** The annotations with exactly these plugins listed; the same object when they are listed already. */
export function withMigratedPlugins(
  annotations: Readonly<Record<string, string>> | undefined,
  plugins: ReadonlySet<string>,
): Readonly<Record<string, string>> | undefined {
  const current = parseMigratedPlugins(annotations?.[migratedPluginsAnnotation]);
  const equal = current.size === plugins.size && [...plugins].every((name) => current.has(name));
  if (equal) return annotations;
  const { [migratedPluginsAnnotation]: _dropped, ...others } = annotations ?? {};
  return plugins.size === 0
    ? others
    : { ...others, [migratedPluginsAnnotation]: [...plugins].sort().join(",") };
}
