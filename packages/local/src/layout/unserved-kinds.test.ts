import { createApiServer, memoryStore } from "@longshore/apiserver";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, test } from "vitest";
import { unservedKindWarnings } from "./unserved-kinds.ts";

test("each is a kind that can be created, and the warning names it", () => {
  const { registry } = createApiServer(virtualEnv(), { store: memoryStore() });
  const served = new Set(
    registry.context.kinds.all().map(({ group, kind }) => (group === "" ? kind : `${kind}.${group}`)),
  );
  const keys = Object.keys(unservedKindWarnings);
  expect(keys.filter((key) => !served.has(key))).toEqual([]);
  for (const key of keys) expect(unservedKindWarnings[key]).toContain(`the kind ${key.split(".")[0]}:`);
});
