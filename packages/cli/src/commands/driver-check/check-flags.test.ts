import { expect, test } from "vitest";
import { UsageError } from "../../exit.ts";
import { duration } from "../../flags.ts";
import {
  type CheckFlags,
  commandWords,
  keyValues,
  reportInFlags,
  selection,
  suiteOptions,
} from "./check-flags.ts";

const flags: CheckFlags = {
  endpoint: "unix:///csi.sock",
  timeout: "60s",
  patience: "2m",
  volumeSize: "1Gi",
  accessType: "mount",
  repeats: "3",
  parallel: "5",
  output: "table",
};

test("flags become options, defaults included", () => {
  expect(suiteOptions(flags, {})).toMatchObject({
    endpoint: "unix:///csi.sock",
    timeoutMs: 60_000,
    settleTimeoutMs: 120_000,
    volumeSizeBytes: 2n ** 30n,
    expandSizeBytes: 2n ** 31n,
    parameters: {},
    accessType: "mount",
    fillNode: false,
    repeats: 3,
    parallel: 5,
  });
  expect(
    suiteOptions(
      { ...flags, parameters: ["a=1,b=x=y", "c="], volumeSize: "512Mi", expandSize: "1G", secondNode: "n2" },
      {},
    ),
  ).toMatchObject({
    parameters: { a: "1", b: "x=y", c: "" },
    volumeSizeBytes: 2n ** 29n,
    expandSizeBytes: 10n ** 9n,
    secondNodeId: "n2",
  });
});

test.each([
  [{ endpoint: undefined }, "--endpoint is required"],
  [{ volumeSize: "big" }, '--volume-size: "big" is not a size'],
  [{ volumeSize: "0" }, '--volume-size: "0" is not a size'],
  [{ volumeSize: "-1Gi" }, '--volume-size: "-1Gi" is not a size'],
  [{ expandSize: "1Gi" }, "--expand-size: 1Gi must be more than --volume-size 1Gi"],
  [{ timeout: "soon" }, '--timeout: "soon" is not a duration'],
  [{ timeout: "0" }, '--timeout: "0" is not a duration'],
  [{ patience: "90000h" }, '--patience: "90000h" is not a duration'],
  [{ parameters: ["type"] }, '--parameters: "type" is not key=value'],
  [{ mutableParameters: ["=1"] }, '--mutable-parameters: "=1" is not key=value'],
  [{ repeats: "1" }, '--repeats: "1" is not a whole number from 2'],
  [{ parallel: "1000" }, '--parallel: "1000" is not a whole number from 2 to 100'],
  [{ focus: ["["] }, '--focus: "[" is not a regular expression'],
  [{ skip: ["("] }, '--skip: "(" is not a regular expression'],
] as const)("%o is wrong usage", (over, words) => {
  const given = Object.fromEntries(
    Object.entries({ ...flags, ...over }).filter(([, value]) => value !== undefined),
  );
  const parse = () => suiteOptions(given as unknown as CheckFlags, {});
  expect(parse).toThrow(words);
  expect(parse).toThrow(UsageError);
});

test.each([
  ["250ms", 250],
  ["1.5s", 1500],
  ["10", 10_000],
  ["2m", 120_000],
  ["1h", 3_600_000],
])("%s is %d ms", (text, ms) => expect(duration("--timeout", text)).toBe(ms));

test("focus and skip are both looked at; without them all checks run", () => {
  const ids = ["controller.create-volume.works", "controller.delete-volume.works", "node.data.cloned"];
  const left = (given: Parameters<typeof selection>[0]) => ids.filter(selection(given));
  expect(left({})).toEqual(ids);
  expect(left({ focus: ["^controller"] })).toEqual(ids.slice(0, 2));
  expect(left({ focus: ["create", "data"] })).toEqual([ids[0], ids[2]]);
  expect(left({ skip: ["works$"] })).toEqual([ids[2]]);
  expect(left({ focus: ["^controller"], skip: ["delete"] })).toEqual([ids[0]]);
});

test("a later key wins, as the last flag does", () => {
  expect(keyValues("--parameters", ["a=1", "a=2"])).toEqual({ a: "2" });
  expect(keyValues("--parameters", undefined)).toEqual({});
});

test.each([
  ["./restart.sh", ["./restart.sh"]],
  ["  docker  restart\tdriver ", ["docker", "restart", "driver"]],
  [`sh -c 'kill -9 "$(cat pid)"; ./start &'`, ["sh", "-c", 'kill -9 "$(cat pid)"; ./start &']],
  ['run "a b" c\\ d ""', ["run", "a b", "c d", ""]],
])("%s is split as a shell would", (text, words) =>
  expect(commandWords("--restart-cmd", text)).toEqual(words),
);

test.each(["", "  ", "run 'it"])("%j is no command", (text) => {
  expect(() => commandWords("--restart-cmd", text)).toThrow(UsageError);
});

test("why a check was skipped is said in flags, and what a driver said stays as it is", () => {
  const results = [
    { outcome: "skipped", message: "no second node is known: give `secondNodeId`" },
    { outcome: "skipped", message: "volumes are checked as block devices (`accessType: block`)" },
    { outcome: "failed", message: "INTERNAL: the map of `secrets` is empty" },
    { outcome: "passed" },
  ];
  expect(reportInFlags({ results } as never).results.map(({ message }) => message)).toEqual([
    "no second node is known: give --second-node",
    "volumes are checked as block devices (--access-type block)",
    "INTERNAL: the map of `secrets` is empty",
    undefined,
  ]);
});
