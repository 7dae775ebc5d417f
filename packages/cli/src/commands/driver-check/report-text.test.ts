import { stripVTControlCharacters } from "node:util";
import type { ConformanceReport } from "@longshore/conformance";
import { expect, test } from "vitest";
import { reportText } from "./report-text.ts";

const rule = { sentence: "it must hold", spec: "CreateVolume", elapsedMs: 1500, verb: "MUST" as const };
const base: ConformanceReport = {
  driver: {
    name: "demo.csi",
    vendorVersion: "1.0",
    nodeId: "node-1",
    capabilities: {
      plugin: ["CONTROLLER_SERVICE"],
      controller: ["CREATE_DELETE_VOLUME"],
      groupController: [],
      node: [],
    },
  },
  results: [
    { ...rule, id: "controller.create-volume.works", outcome: "passed" },
    { ...rule, id: "controller.create-volume.name-required", outcome: "passed" },
    ...["a", "b", "c", "d"].map((name) => ({
      ...rule,
      id: `node.data.${name}`,
      outcome: "skipped" as const,
      message: "no node service answers",
    })),
  ],
  passed: 2,
  failed: 0,
  warned: 0,
  skipped: 4,
  leftovers: [],
  elapsedMs: 3000,
};
const plain = (report: ConformanceReport, verbose = false) =>
  stripVTControlCharacters(reportText(report, verbose));

test("a report in short: what was checked by subject, and what was not, by reason", () => {
  expect(plain(base)).toBe(`driver       demo.csi 1.0
node         node-1
plugin       CONTROLLER_SERVICE
controller   CREATE_DELETE_VOLUME

SUBJECT                    PASSED   FAILED   WARNED   SKIPPED   TIME
controller.create-volume   2        -        -        -         3.0 s
node.data                  -        -        -        4         6.0 s

Skipped
  no node service answers: node.data.a, node.data.b and 2 more

2 passed, 0 failed, 0 warned, 4 skipped in 3.0 s: the driver keeps the contract, as far as it was checked
`);
});

test("a failure says what must hold, what was seen, and which calls were made", () => {
  const calls = [
    { rpc: "CreateVolume", code: "OK", request: { name: "n".repeat(400) }, elapsedMs: 3.4 },
    { rpc: "CreateVolume", code: "INTERNAL", message: "no", request: {}, elapsedMs: 1 },
  ];
  const failure = {
    ...rule,
    id: "controller.create-volume.idempotent",
    outcome: "failed" as const,
    message: "two volumes",
    calls,
  };
  const text = plain({ ...base, results: [failure], passed: 0, failed: 1, skipped: 0 });
  expect(text).toContain(`FAILED controller.create-volume.idempotent
  must hold: it must hold (CSI specification, CreateVolume)
  was seen:  two volumes
  calls:
    CreateVolume {"name":"nnn`);
  expect(text).toContain("n… → OK (3 ms)\n    CreateVolume {} → INTERNAL: no (1 ms)\n");
  expect(text).toMatch(
    /0 passed, 1 failed, 0 warned, 0 skipped in 3\.0 s: the driver breaks the contract\n$/,
  );
});

test("what could not be removed is named, and is the verdict of a run without failures", () => {
  const text = plain({ ...base, leftovers: ["volume vol-1: DeleteVolume failed with INTERNAL: no"] });
  expect(text).toContain(
    "Still there, made by the checks: remove it by hand\n  volume vol-1: DeleteVolume failed",
  );
  expect(text).toMatch(/what the checks made could not be removed\n$/);
});

test("verbose is a line for each check", () => {
  expect(plain(base, true)).toContain(
    "passed    controller.create-volume.name-required   1.5 s   it must hold\nskipped   node.data.a                              -       it must hold\n",
  );
});

test("where everything was skipped nothing is claimed", () => {
  expect(plain({ ...base, results: [], passed: 0, skipped: 0 })).toMatch(/: nothing was checked\n$/);
});
