/** Reads the fields of a parsed YAML document, and says exactly which one is wrong. */
import { ConfigError } from "./cluster-config.ts";

/** A mapping of the document, with the words by which to name it in an error. */
export class Fields {
  /** File and path of the mapping, such as `/etc/cluster/config: users[admin].user`. */
  readonly where: string;
  readonly #values: Readonly<Record<string, unknown>>;

  /** @throws ConfigError unless `value` is a mapping */
  constructor(value: unknown, where: string) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new ConfigError(`${where} must be a mapping`);
    }
    this.#values = value as Readonly<Record<string, unknown>>;
    this.where = where;
  }

  has(name: string): boolean {
    const value = this.#values[name];
    return value !== undefined && value !== null;
  }

  /** A text, or undefined when it is not there or empty. @throws ConfigError for another type */
  text(name: string): string | undefined {
    const value = this.#values[name];
    if (value === undefined || value === null || value === "") return undefined;
    if (typeof value !== "string") throw new ConfigError(`${this.where}.${name} must be a text`);
    return value;
  }

  /** @throws ConfigError when it is missing; `remedy` says what to do */
  requiredText(name: string, remedy: string): string {
    const value = this.text(name);
    if (value === undefined) throw new ConfigError(`${this.where}.${name} is missing: ${remedy}`);
    return value;
  }

  flag(name: string): boolean {
    const value = this.#values[name] ?? false;
    if (typeof value !== "boolean") throw new ConfigError(`${this.where}.${name} must be true or false`);
    return value;
  }

  /** A mapping below this one, or undefined when it is not there. */
  mapping(name: string): Fields | undefined {
    return this.has(name) ? new Fields(this.#values[name], `${this.where}.${name}`) : undefined;
  }

  /** Elements of a list; none when it is not there. */
  list(name: string): readonly unknown[] {
    const value = this.#values[name] ?? [];
    if (!Array.isArray(value)) throw new ConfigError(`${this.where}.${name} must be a list`);
    return value;
  }

  /** The mapping `inner` of the list element whose `name` is `wanted`, or undefined. */
  named(list: string, wanted: string, inner: string): Fields | undefined {
    for (const element of this.list(list)) {
      const entry = new Fields(element, `${this.where}.${list}[]`);
      if (entry.text("name") !== wanted) continue;
      return new Fields(entry.#values[inner] ?? {}, `${this.where}.${list}[${wanted}].${inner}`);
    }
    return undefined;
  }
}
