import { createLogger } from "@longshore/runtime";
import { expect, test } from "vitest";
import { clusterFields, errorInFlags, inFlags, loggerInFlags } from "./field-flags.ts";

test.each([
  ["choose another `port`, or 0 for any", "choose another --port, or 0 for any"],
  ["make room there, or choose another `dir`", "make room there, or choose another --dir"],
  ["has `compat: kubernetes-1.20`: leave `compat` out", "has --compat kubernetes-1.20: leave --compat out"],
  ['`plugin`: "x" is not a plugin', '--plugin: "x" is not a plugin'],
  ["run `kubectl config use-context NAME`", "run `kubectl config use-context NAME`"],
  ["`toString` and `other` are no fields", "`toString` and `other` are no fields"],
])("%s", (text, said) => {
  expect(inFlags(text, clusterFields)).toBe(said);
});

test("a log says flags in its messages, and in errors and their causes; the errors stay as they are", () => {
  const lines: string[] = [];
  const logger = createLogger({
    format: "human",
    level: "info",
    destination: { write: (line) => lines.push(line) },
  });
  const error = new TypeError("no owner", { cause: new Error("lower `ownerRefLevel` to 1") });
  loggerInFlags(logger, { capacity: "--enable-capacity", ownerRefLevel: "--capacity-ownerref-level" })
    .child({ component: "provisioner" })
    .error("leave `capacity` out", { error, retryInMs: 5 });
  expect(lines.join("")).toMatch(
    / ERROR provisioner: leave --enable-capacity out error="no owner: lower --capacity-ownerref-level to 1" retryInMs=5\n$/,
  );
  expect((error.cause as Error).message).toBe("lower `ownerRefLevel` to 1");
});

test("what a driver or a server has said stays as it is, also as the cause of an error of ours", () => {
  const said = Object.assign(new Error("missing parameter `port`"), { name: "CsiCallError" });
  const error = errorInFlags(new Error("leave `force` out", { cause: said }), clusterFields);
  expect([error.message, (error.cause as Error).message]).toEqual([
    "leave --force out",
    "missing parameter `port`",
  ]);
});

test("the stack says flags as well", () => {
  expect(errorInFlags(new Error("leave `force` out"), clusterFields).stack).toMatch(
    /^Error: leave --force out\n/,
  );
});

test("causes that form a circle end", () => {
  const error = new Error("leave `force` out");
  error.cause = error;
  expect(errorInFlags(error, clusterFields).message).toBe("leave --force out");
});
