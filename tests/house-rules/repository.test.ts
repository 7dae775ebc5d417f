/** Facts about the repository as a whole that no linter looks at. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { type LockedPackage, missingOptionalPackages } from "../../scripts/complete-lockfile.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const json = (path: string) => JSON.parse(readFileSync(`${root}${path}`, "utf8"));

describe.each(readdirSync(`${root}packages`))("package %s", (name) => {
  const manifest = json(`packages/${name}/package.json`);

  test.skipIf(manifest.private === true)(
    "is publishable under @longshore at the version of the repository",
    () => {
      expect(manifest).toMatchObject({
        name: `@longshore/${name}`,
        version: json("package.json").version,
        license: "Apache-2.0",
        type: "module",
        engines: json("package.json").engines,
        publishConfig: { access: "public" },
        files: expect.arrayContaining(["dist"]),
      });
      expect(manifest.version).toMatch(/^0\./);
    },
  );

  test.runIf(manifest.private === true)("is private: sources for tests alone", () => {
    expect([name, manifest.files, manifest.publishConfig]).toEqual(["testing", undefined, undefined]);
  });

  test("references exactly the projects that it depends on", () => {
    const dependencies = Object.keys(manifest.dependencies ?? {})
      .filter((dependency) => dependency.startsWith("@longshore/"))
      .map((dependency) => `../${dependency.slice("@longshore/".length)}`);
    const references = (json(`packages/${name}/tsconfig.json`).references ?? []) as { path: string }[];
    expect(references.map(({ path }) => path).sort()).toEqual(dependencies.sort());
  });
});

test("the lockfile leaves the package host to the machine", () => {
  const packages = Object.entries<{ resolved?: string; link?: boolean }>(json("package-lock.json").packages);
  const fixed = packages.filter(([, { resolved = "" }]) => /^(https?|git|file):/.test(resolved));
  expect(fixed).toEqual([]);
});

test("the lockfile holds the optional packages of all platforms (else: tsx scripts/complete-lockfile.ts)", () => {
  const packages = json("package-lock.json").packages as Record<string, LockedPackage>;
  expect(Object.keys(missingOptionalPackages(packages))).toEqual([]);
});

test("every dependency supports the oldest Node that we do", () => {
  const packages = Object.entries<{ engines?: { node?: string }; optional?: boolean }>(
    json("package-lock.json").packages,
  );
  // Only plain lower bounds are judged: a range of alternatives says which majors it means.
  const tooNew = packages.filter(([, { engines, optional }]) => {
    const lowest = /^>=\s*(\d+)/.exec(engines?.node ?? "")?.[1];
    return optional !== true && lowest !== undefined && Number(lowest) > 20;
  });
  expect(tooNew.map(([path]) => path)).toEqual([]);
});

test.each(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"])(
  "%s is there",
  (file) => {
    expect(existsSync(`${root}${file}`)).toBe(true);
  },
);

test("every decision is in the list of decisions", () => {
  const list = readFileSync(`${root}docs/decisions/README.md`, "utf8");
  const records = readdirSync(`${root}docs/decisions`).filter((file) => /^\d{4}-/.test(file));
  expect(records.filter((file) => !list.includes(`(${file})`))).toEqual([]);
});
