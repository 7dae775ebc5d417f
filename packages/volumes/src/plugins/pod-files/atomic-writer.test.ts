/** Files of a volume come into force all at once. Source: docs/behaviour/pod-volumes.md 4. */
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import {
  type Host,
  HostError,
  SeededRandom,
  SimulatedHost,
  unprivilegedHost,
  VirtualClock,
} from "@longshore/runtime";
import { afterEach, describe, expect, it } from "vitest";
import { writeFiles } from "./atomic-writer.ts";
import { type Payload, PayloadError } from "./payload.ts";

const made: string[] = [];
afterEach(async () => {
  for (const path of made.splice(0)) await fs.rm(path, { recursive: true, force: true });
});

async function unprivileged() {
  const directory = await fs.realpath(await fs.mkdtemp(`${tmpdir()}/longshore-writer-`));
  made.push(directory);
  return { host: unprivilegedHost(), directory };
}

async function simulated(beforeChange: (operation: string) => void = () => {}) {
  const host = new SimulatedHost({ beforeChange });
  await host.makeDirectory("/v");
  return { host, directory: "/v" };
}

const payloadOf = (files: Readonly<Record<string, string>>, mode = 0o644): Payload =>
  new Map(Object.entries(files).map(([path, data]) => [path, { data, mode }]));

function writerOf(host: Host, directory: string) {
  const env = { clock: new VirtualClock(), random: new SeededRandom(1), host };
  return (payload: Payload, fsGroup?: number) => writeFiles(env, { directory, payload, fsGroup });
}

/** What a container sees: every file through the links, as text. */
async function seen(host: Host, directory: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  const visit = async (below: string) => {
    for (const name of (await host.readDirectory(`${directory}${below}`)) ?? []) {
      if (below === "" && name.startsWith("..")) continue;
      const path = `${below}/${name}`;
      const text = await host.readFile(`${directory}${path}`).catch((error: HostError) => error.code);
      if (text === "EISDIR") await visit(path);
      else files[path.slice(1)] = text ?? "missing";
    }
  };
  await visit("");
  return files;
}

describe.each([
  ["simulated", simulated],
  ["unprivileged", unprivileged],
] as const)("the atomic writer on the %s host", (_form, make) => {
  it("containers see the files through ..data, with their modes", async () => {
    const { host, directory } = await make();
    await writerOf(host, directory)(payloadOf({ a: "1", "sub/b": "2" }, 0o440));
    expect(await seen(host, directory)).toEqual({ a: "1", "sub/b": "2" });
    expect(await host.readLink(`${directory}/a`)).toBe("..data/a");
    expect(await host.readLink(`${directory}/sub`)).toBe("..data/sub");
    expect((await host.stat(`${directory}/..data/sub/b`))?.mode).toBe(0o440);
  });

  it("the same files are not written a second time", async () => {
    const { host, directory } = await make();
    const write = writerOf(host, directory);
    await write(payloadOf({ a: "1" }));
    const before = await host.readLink(`${directory}/..data`);
    await write(payloadOf({ a: "1" }));
    expect(await host.readLink(`${directory}/..data`)).toBe(before);
    await write(payloadOf({ a: "1" }, 0o600));
    expect(await host.readLink(`${directory}/..data`)).not.toBe(before);
  });

  it("what is not any more vanishes, and nothing is left over", async () => {
    const { host, directory } = await make();
    const write = writerOf(host, directory);
    await write(payloadOf({ a: "1", "sub/b": "2" }));
    await write(payloadOf({ c: "3" }));
    expect(await seen(host, directory)).toEqual({ c: "3" });
    const current = await host.readLink(`${directory}/..data`);
    expect(await host.readDirectory(directory)).toEqual([current, "..data", "c"].sort());
    await write(new Map());
    expect(await seen(host, directory)).toEqual({});
  });

  it.each([
    "/a",
    "../a",
    "a/../../b",
    "..a",
    "a//b",
    "",
    "./a",
    "a\0",
    `a/${"b".repeat(256)}`,
    "a/".repeat(2500),
  ])("the path %j is refused", async (path) => {
    const { host, directory } = await make();
    const write = writerOf(host, directory)(payloadOf({ ok: "1", [path]: "2" }));
    await expect(write).rejects.toThrow(PayloadError);
    expect(await host.readDirectory(directory)).toEqual([]);
  });
});

it("bytes that are no text are written as they are", async () => {
  const { host, directory } = await unprivileged();
  const bytes = Uint8Array.of(0xff, 0, 0xfe);
  await writerOf(host, directory)(new Map([["key", { data: bytes, mode: 0o644 }]]));
  expect(new Uint8Array(await fs.readFile(`${directory}/key`))).toEqual(bytes);
});

it("a file that is open keeps its content when others come into force", async () => {
  const { host, directory } = await unprivileged();
  const write = writerOf(host, directory);
  await write(payloadOf({ a: "old" }));
  const open = await fs.open(`${directory}/a`);
  await write(payloadOf({ a: "new" }));
  expect(await open.readFile("utf8")).toBe("old");
  await open.close();
});

it("after a crash at any step the files are the old or the new ones, and the next write completes them", async () => {
  const old = { a: "1", "sub/b": "1", gone: "1" };
  const fresh = { a: "2", "sub/b": "2", c: "2" };
  let points = 0;
  for (let point = 1; ; point++) {
    let left = Number.POSITIVE_INFINITY;
    const { host, directory } = await simulated(() => {
      if (--left < 0) throw new HostError("crash", "/v", "EIO");
    });
    const write = writerOf(host, directory);
    await write(payloadOf(old));
    left = point - 1;
    const crashed = await write(payloadOf(fresh)).then(
      () => false,
      () => true,
    );
    left = Number.POSITIVE_INFINITY;
    const { c, gone, ...others } = await seen(host, directory);
    expect([
      { a: "1", "sub/b": "1" },
      { a: "2", "sub/b": "2" },
    ]).toContainEqual(others);
    await write(payloadOf(fresh));
    expect(await seen(host, directory)).toEqual(fresh);
    const current = await host.readLink(`${directory}/..data`);
    expect(await host.readDirectory(directory)).toEqual([current, "..data", "a", "c", "sub"].sort());
    if (!crashed) break;
    points = point;
  }
  expect(points).toBeGreaterThan(8);
});
