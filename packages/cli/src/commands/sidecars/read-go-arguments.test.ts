import { expect, test } from "vitest";
import { duration, gates, labels, obsolete, text, toggle, unlimited, whole } from "./flag-table.ts";
import { readGoArguments } from "./read-go-arguments.ts";

const table = {
  "csi-address": text("address", "/run/csi/socket", ""),
  timeout: duration("15s", ""),
  resync: duration("0", "", { mayBeZero: true }),
  "leader-election": toggle(false, ""),
  "immediate-topology": toggle(true, ""),
  workers: whole(10, "", 1),
  length: whole(-1, "", -1),
  qps: unlimited(5, ""),
  v: whole(0, ""),
  "feature-gates": gates({
    A: { default: true, help: "" },
    B: { default: false, help: "" },
    L: { default: true, locked: true, help: "" },
  }),
  tags: labels(""),
  logtostderr: obsolete("switch", "gone"),
  master: obsolete("text", "gone"),
};

const read = (...argv: readonly string[]) => {
  const { values, rest } = readGoArguments(table, argv);
  return { ...Object.fromEntries(values), ...(rest.length > 0 ? { rest } : {}) };
};

test.each([
  ["two dashes and =", ["--csi-address=/a"], { "csi-address": "/a" }],
  ["two dashes and the next word", ["--csi-address", "/a"], { "csi-address": "/a" }],
  ["one dash and =", ["-csi-address=/a"], { "csi-address": "/a" }],
  ["one dash and the next word", ["-timeout", "1m30s"], { timeout: 90_000 }],
  ["a value with =", ["--csi-address=unix:///a=b"], { "csi-address": "unix:///a=b" }],
  ["an empty value", ["--csi-address="], { "csi-address": "" }],
  ["a value that begins with a dash", ["--length", "-1"], { length: -1 }],
  ["a value that looks like a flag", ["--csi-address", "--v"], { "csi-address": "--v" }],
  ["a switch", ["--leader-election"], { "leader-election": true }],
  ["a switch with one dash", ["-leader-election"], { "leader-election": true }],
  ["a switch set to false", ["--immediate-topology=false"], { "immediate-topology": false }],
  ["a switch set to T", ["--leader-election=T"], { "leader-election": true }],
  ["a letter", ["-v=5"], { v: 5 }],
  ["a letter and the next word", ["-v", "5"], { v: 5 }],
  ["the last of several", ["--v=1", "--v=2"], { v: 2 }],
  [
    "gates over their defaults",
    ["--feature-gates=B=true"],
    { "feature-gates": { A: true, B: true, L: true } },
  ],
  [
    "gates of the API server library, which have no effect",
    ["--feature-gates=AllAlpha=true,WatchList=false,B=true"],
    { "feature-gates": { A: true, B: true, L: true } },
  ],
  [
    "gates as the next word, with blanks",
    ["--feature-gates", "A=false, B=true"],
    { "feature-gates": { A: false, B: true, L: true } },
  ],
  ["labels", ["--tags=a:b,c:d"], { tags: { a: "b", c: "d" } }],
  ["0 for no limit", ["--qps=0"], { qps: undefined }],
  ["a duration of 0 where that means something", ["--resync=0"], { resync: 0 }],
  [
    "what has no effect any more",
    ["--logtostderr", "-master=x"],
    { logtostderr: undefined, master: undefined },
  ],
  ["unknown flags, which are left for others", ["-nonsense=1", "--v=1"], { v: 1, rest: ["--nonsense"] }],
  ["words", ["--v=1", "word"], { v: 1, rest: ["word"] }],
  ["-h, which is everybody's", ["-h"], { rest: ["-h"] }],
  ["-help, which is Go's", ["-help"], { rest: ["--help"] }],
  ["nothing of the prototype", ["--toString=1"], { rest: ["--toString"] }],
  ["nothing after --", ["--v=1", "--", "--v=2"], { v: 1, rest: ["--", "--v=2"] }],
] as const)("%s", (_name, argv, expected) => {
  expect(read(...argv)).toEqual(expected);
});

test.each([
  ["a value that is missing", ["--timeout"], "flag --timeout needs a value: duration"],
  ["a duration without unit", ["--timeout=15"], '--timeout: "15" cannot be: write a duration such as 15s'],
  ["a duration of 0", ["--timeout=0"], "write a duration above zero"],
  ["a switch that is neither", ["--leader-election=yes"], "write true or false"],
  ["too few", ["--workers=0"], "write a whole number from 1 on"],
  ["an unknown gate", ["--feature-gates=C=true"], "unknown feature gate C; known are A, B, L"],
  ["a gate without value", ["--feature-gates=A"], "write NAME=true or NAME=false"],
  ["a locked gate", ["--feature-gates=L=false"], "feature gate L is locked to true: remove it"],
  ["labels in another form", ["--tags=a=b"], "write key:value,key:value"],
  ["a limit below 0", ["--qps=-1"], "write a number from 0 on; 0 means no limit"],
] as const)("%s is refused", (_name, argv, message) => {
  expect(() => read(...argv)).toThrow(message);
});
