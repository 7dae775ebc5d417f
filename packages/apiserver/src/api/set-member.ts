/**
 * Members whose names users choose. Assigning one that is called `__proto__` sets the prototype and no member: it is
 * defined instead. (Spreads, computed keys, Object.fromEntries and JSON.parse define members anyway.)
 */

/** Sets a member of the object, whatever its name. */
export function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** The object's own member, never one that all objects have. */
export function ownMember(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}
