/**
 * Completes package-lock.json with the optional packages of other platforms. npm leaves them out when the lockfile
 * was written where a package host does not offer them, and then `npm ci` refuses the lockfile everywhere.
 *
 *   tsx scripts/complete-lockfile.ts            after `npm install` of something new
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** One package in a lockfile, as far as it matters here. */
export interface LockedPackage {
  readonly version?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Packages = Readonly<Record<string, LockedPackage>>;

const systems = "aix android darwin freebsd linux netbsd openbsd openharmony sunos win32".split(" ");
const processors = "arm arm64 ia32 loong64 mips64el ppc64 riscv64 s390x x64 wasm32".split(" ");
/** Names that platform packages use for what npm calls otherwise. */
const synonyms: Readonly<Record<string, string>> = {
  armv7: "arm",
  ppc64le: "ppc64",
  win: "win32",
  fsevents: "darwin",
};

/** The optional dependencies that no package of the lockfile stands for, ready to be put into it. */
export function missingOptionalPackages(packages: Packages): Record<string, LockedPackage> {
  const missing: Record<string, LockedPackage> = {};
  for (const [parent, { dev, optionalDependencies = {} }] of Object.entries(packages)) {
    for (const [name, range] of Object.entries(optionalDependencies)) {
      if (isLocked(packages, parent, name)) continue;
      const version = /\d+\.\d+\.\d+[^\s|]*/.exec(range)?.[0];
      if (version === undefined) throw new Error(`${parent} wants ${name} ${range}: no version to lock`);
      missing[`node_modules/${name}`] = {
        version,
        ...platformOf(name),
        ...(dev === true ? { dev } : {}),
        optional: true,
      };
    }
  }
  return missing;
}

/** True when Node's resolution, from `parent` upwards, finds `name`. */
function isLocked(packages: Packages, parent: string, name: string): boolean {
  for (let at = parent; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    if (packages[`${at === "" ? "" : `${at}/`}node_modules/${name}`] !== undefined) return true;
    if (at === "") return false;
  }
}

/** The platform in a platform package's name, e.g. `@swc/core-linux-x64-musl`. */
function platformOf(name: string): Pick<LockedPackage, "os" | "cpu" | "libc"> {
  const words = name.split(/[/\-_.]/).map((word) => synonyms[word] ?? word);
  const os = words.filter((word) => systems.includes(word));
  const cpu = words.filter((word) => processors.includes(word));
  const abi = words.find((word) => /^(musl|gnu)/.test(word));
  const libc = abi === undefined ? [] : [abi.startsWith("musl") ? "musl" : "glibc"];
  return {
    ...(os.length > 0 ? { os } : {}),
    ...(cpu.length > 0 ? { cpu } : {}),
    ...(libc.length > 0 && os.includes("linux") ? { libc } : {}),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = fileURLToPath(new URL("../package-lock.json", import.meta.url));
  const lock = JSON.parse(readFileSync(path, "utf8")) as { packages: Packages };
  const missing = missingOptionalPackages(lock.packages);
  const packages = Object.entries({ ...lock.packages, ...missing }).sort(([a], [b]) =>
    a.localeCompare(b, "en"),
  );
  writeFileSync(path, `${JSON.stringify({ ...lock, packages: Object.fromEntries(packages) }, null, 2)}\n`);
  process.stdout.write(
    `package-lock.json: ${Object.keys(missing).length} packages of other platforms added\n`,
  );
}
