/** Which names plugins may have. Source: docs/behaviour/volume-plugins.md 4.1, docs/behaviour/flexvolume.md 1. */

const namePart = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** A DNS subdomain, one slash, and a name of letters, digits, `-`, `_` and `.`. */
export function isQualifiedPluginName(name: string): boolean {
  const [vendor = "", plugin = "", ...more] = name.split("/");
  return more.length === 0 && /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(vendor) && namePart.test(plugin);
}

/** Likewise; a plugin that a prober finds may do without a vendor and its slash. */
export function isProbedPluginName(name: string): boolean {
  return isQualifiedPluginName(name) || namePart.test(name);
}
