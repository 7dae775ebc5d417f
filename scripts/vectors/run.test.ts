import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { handlerTable } from "./groups.ts";
import { vectorFile } from "./location.ts";
import { runVectors } from "./run.ts";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "vectors-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const line = (members: object) => `${JSON.stringify({ id: "case", op: "isPVMigratable", input: { pv: null }, ...members })}\n`;

async function run(text: string, gzipped = false) {
  const file = join(directory, gzipped ? "cases.jsonl.gz" : "cases.jsonl");
  writeFileSync(file, gzipped ? gzipSync(text) : text);
  const printed: string[] = [];
  return { ...(await runVectors([file], (text) => printed.push(text))), printed: printed.join("\n") };
}

describe("the vector runner", () => {
  test("every recorded answer of the translation library is ours", async () => {
    const printed: string[] = [];
    const totals = await runVectors([vectorFile("translation")], (text) => printed.push(text));
    expect(printed).toEqual([]);
    expect(totals.failed).toBe(0);
    expect(totals.passed).toBeGreaterThan(3000);
  });

  test("counts what agrees, also in a gzipped file", async () => {
    expect(await run(line({ output: false }) + line({ id: "two", output: false }), true)).toMatchObject({ passed: 2, failed: 0 });
  });

  test("a different answer is shown with what was expected", async () => {
    const { failed, printed } = await run(line({ output: true }));
    expect(failed).toBe(1);
    expect(printed).toContain("FAIL case");
    expect(printed).toContain("- .: true");
    expect(printed).toContain("+ .: false");
  });

  test("each member that differs is a line of its own", async () => {
    const input = { pv: { spec: { cinder: { volumeID: "v" } } } };
    const output = { spec: { csi: { driver: "cinder.csi.openstack.org", volumeHandle: "w", fsType: "xfs" } } };
    const { printed } = await run(line({ op: "translateInTreePVToCSI", input, output }));
    expect(printed).toContain('- .spec.csi.fsType: "xfs"');
    expect(printed).toContain('- .spec.csi.volumeHandle: "w"');
    expect(printed).toContain('+ .spec.csi.volumeHandle: "v"');
    expect(printed).not.toContain(".spec.csi.driver");
  });

  test("refusing where an answer is expected differs, and the other way round", async () => {
    expect(await run(line({ error: "no" }))).toMatchObject({ passed: 0, failed: 1 });
    expect(await run(line({ op: "translateInTreePVToCSI", output: {} }))).toMatchObject({ passed: 0, failed: 1 });
    expect(await run(line({ op: "translateInTreePVToCSI", error: "any text" }))).toMatchObject({ passed: 1, failed: 0 });
  });

  test("one of several right answers is enough", async () => {
    expect(await run(line({ anyOf: [{ output: true }, { output: false }] }))).toMatchObject({ passed: 1, failed: 0 });
    expect(await run(line({ anyOf: [{ output: true }, { error: "x" }] }))).toMatchObject({ passed: 0, failed: 1 });
  });

  test("an unknown operation and a line that is no JSON fail", async () => {
    const { failed, printed } = await run(`${line({ op: "fly", output: 1 })}{\n`);
    expect(failed).toBe(2);
    expect(printed).toContain('unknown op "fly"');
    expect(printed).toContain("not a line of JSON");
  });

  test("two groups cannot claim one operation", () => {
    const group = { name: "a", handlers: { fly: () => 1 } };
    expect(() => handlerTable([group, { ...group, name: "b" }])).toThrow("fly");
  });
});
