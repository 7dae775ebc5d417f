import { expect, test } from "vitest";
import { missingOptionalPackages } from "./complete-lockfile.ts";

test("optional packages of other platforms are added, those that are there are not", () => {
  const missing = missingOptionalPackages({
    "": {},
    "node_modules/tool": {
      dev: true,
      optionalDependencies: {
        "@tool/linux-x64": "1.2.3",
        "@tool/linux-x64-musl": "1.2.3",
        "@tool/binding-linux-arm-gnueabihf": "1.2.3",
        "@tool/darwin-arm64": "1.2.3",
        "@tool/wasm32-wasi": "1.2.3",
        fsevents: "~2.3.2",
        nested: "1.0.0",
      },
    },
    "node_modules/tool/node_modules/nested": { version: "1.0.0" },
    "node_modules/@tool/linux-x64": { version: "1.2.3" },
  });
  expect(missing).toEqual({
    "node_modules/@tool/linux-x64-musl": {
      version: "1.2.3",
      os: ["linux"],
      cpu: ["x64"],
      libc: ["musl"],
      dev: true,
      optional: true,
    },
    "node_modules/@tool/binding-linux-arm-gnueabihf": {
      version: "1.2.3",
      os: ["linux"],
      cpu: ["arm"],
      libc: ["glibc"],
      dev: true,
      optional: true,
    },
    "node_modules/@tool/darwin-arm64": {
      version: "1.2.3",
      os: ["darwin"],
      cpu: ["arm64"],
      dev: true,
      optional: true,
    },
    "node_modules/@tool/wasm32-wasi": { version: "1.2.3", cpu: ["wasm32"], dev: true, optional: true },
    "node_modules/fsevents": { version: "2.3.2", os: ["darwin"], dev: true, optional: true },
  });
});

test("an optional dependency without a version cannot be locked", () => {
  expect(() => missingOptionalPackages({ "node_modules/a": { optionalDependencies: { b: "*" } } })).toThrow(
    "node_modules/a wants b *: no version to lock",
  );
});
