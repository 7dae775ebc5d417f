import { X509Certificate } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ensureCredentials, requireOwnKubeconfig, writePrivateFile } from "./cluster-credentials.ts";

const now = new Date("2026-01-01T00:00:00Z");
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "data-dir-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("the credentials of a data directory of which files are missing", () => {
  const pki = () => join(directory, "pki");
  const names = ["ca.crt", "ca.key", "apiserver.crt", "apiserver.key"];
  /** Every choice of files that are there, and which file the refusal names. */
  const cases = Array.from({ length: 16 }, (_, bits) => names.filter((_name, i) => (bits >> i) & 1)).map(
    (left): readonly [string, readonly string[], string | undefined] => {
      const has = (name: string) => left.includes(name);
      const isNew = left.length === 0 || left.join() === "ca.key";
      const refused =
        isNew || (has("ca.crt") && has("ca.key")) ? undefined : has("ca.key") ? "ca.crt" : "ca.key";
      return [left.join(", ") || "nothing", left, refused];
    },
  );

  it.each(cases)("left: %s", async (_title, left, refused) => {
    const before = await ensureCredentials(directory, now);
    for (const name of names) if (!left.includes(name)) rmSync(join(pki(), name));
    const kept = readdirSync(pki());
    if (refused !== undefined) {
      await expect(ensureCredentials(directory, now)).rejects.toThrow(
        `${join(pki(), refused)} is missing, which other files here depend on: restore it from a backup, or remove ${pki()}`,
      );
      expect(readdirSync(pki())).toEqual(kept);
      return;
    }
    const after = await ensureCredentials(directory, now);
    const authority = new X509Certificate(after.authority.certificate);
    expect(new X509Certificate(after.server.certificate).verify(authority.publicKey)).toBe(true);
    if (left.includes("ca.crt")) expect(after.authority).toEqual(before.authority);
    // And so it stays.
    expect(await ensureCredentials(directory, now)).toEqual(after);
  });

  it.each(["ca.key", "ca.crt"])("refuses another %s", async (name) => {
    const other = mkdtempSync(join(directory, "other-"));
    await ensureCredentials(directory, now);
    await ensureCredentials(other, now);
    writeFileSync(join(pki(), name), readFileSync(join(other, "pki", name)));
    await expect(ensureCredentials(directory, now)).rejects.toThrow("do not belong together");
  });

  it.each(["apiserver.key", "apiserver.crt"])(
    "issues its certificate again beside another %s",
    async (name) => {
      const other = mkdtempSync(join(directory, "other-"));
      await ensureCredentials(directory, now);
      await ensureCredentials(other, now);
      writeFileSync(join(pki(), name), readFileSync(join(other, "pki", name)));
      const { authority, server } = await ensureCredentials(directory, now);
      const certificate = new X509Certificate(server.certificate);
      expect(certificate.verify(new X509Certificate(authority.certificate).publicKey)).toBe(true);
    },
  );
});

describe("a private file", () => {
  it("is not written through links, neither at its own name nor at that of its temporary file", async () => {
    const victim = join(directory, "victim");
    writeFileSync(victim, "kept");
    const path = join(directory, "kubeconfig");
    symlinkSync(victim, path);
    symlinkSync(victim, `${path}.tmp-${process.pid}`);
    await writePrivateFile(path, "secret");
    expect(readFileSync(victim, "utf8")).toBe("kept");
    expect(lstatSync(path).isFile()).toBe(true);
    expect(lstatSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, "utf8")).toBe("secret");
  });

  it("leaves nothing beside its place when it cannot be put there", async () => {
    const path = join(directory, "taken");
    mkdirSync(join(path, "by-a-directory"), { recursive: true });
    await expect(writePrivateFile(path, "secret")).rejects.toThrow();
    expect(readdirSync(directory)).toEqual(["taken"]);
  });

  it("does not take the place of a link that someone has made", async () => {
    const path = join(directory, "kubeconfig");
    symlinkSync(join(directory, "nowhere"), path);
    await expect(requireOwnKubeconfig(path)).rejects.toThrow(
      `${path} is a link, and is not followed: name the file itself`,
    );
  });
});

it("a data directory that has its certificates is used without the library that makes them", async () => {
  const before = await ensureCredentials(directory, now);
  vi.resetModules();
  vi.doMock("@peculiar/x509", () => {
    throw new Error("the library was loaded");
  });
  try {
    const again = await import("./cluster-credentials.ts");
    expect(await again.ensureCredentials(directory, now)).toEqual(before);
    rmSync(join(directory, "pki", "apiserver.crt"));
    await expect(again.ensureCredentials(directory, now)).rejects.toThrow();
  } finally {
    vi.doUnmock("@peculiar/x509");
    vi.resetModules();
  }
});
