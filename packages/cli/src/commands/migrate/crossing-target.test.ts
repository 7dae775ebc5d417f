import { expect, it } from "vitest";
import { gateRefusal } from "./crossing-target.ts";

// Source: docs/behaviour/migration-controllers.md D1.
it.each<readonly [string, string, boolean, string | undefined]>([
  ["v1.20.2", "CSIMigrationAWS", true, undefined],
  [
    "v1.20.2-gke.100+abc",
    "CSIMigrationRBD",
    true,
    "v1.20.2-gke.100+abc does not have the feature gate CSIMigrationRBD yet",
  ],
  ["v1.28.0", "CSIMigrationAWS", true, "v1.28.0 does not have the feature gate CSIMigrationAWS any more"],
  ["v1.25.3", "CSIMigrationAWS", false, "v1.25.3 has CSIMigrationAWS locked to true"],
  ["v1.25.3", "CSIMigrationAWS", true, undefined],
  ["a build of one's own", "CSIMigrationAWS", true, undefined],
])("%s with %s=%s", (version, gate, value, refusal) => {
  expect(gateRefusal(version, gate, value)).toBe(refusal);
});
