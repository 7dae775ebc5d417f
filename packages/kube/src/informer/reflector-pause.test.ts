import { SeededRandom } from "@longshore/runtime";
import { expect, test } from "vitest";
import { KubeApiError, KubeTransportError } from "../kube-client.ts";
import { reflectorPauseMs } from "./reflector-pause.ts";

const unreachable = new KubeTransportError("connection refused");
const failure = new KubeApiError({ kind: "Status", apiVersion: "v1", status: "Failure", code: 500 });

test.each([
  ["no answer: at once again", unreachable, 1, 50, 100],
  ["no answer, again and again: never longer than two seconds", unreachable, 30, 1000, 2000],
  ["no answer for long: longer", unreachable, 31, 2000, 3000],
  ["no answer for very long: half a minute", unreachable, 100, 30_000, 45_000],
  ["a failure: half a second", failure, 1, 500, 750],
  ["a watch that ends at once", undefined, 1, 500, 750],
  ["failures without end", failure, 50, 30_000, 45_000],
])("%s", (_, problem, failures, least, most) => {
  for (let seed = 1; seed < 20; seed++) {
    const pauseMs = reflectorPauseMs(problem, failures, new SeededRandom(seed));
    expect(pauseMs).toBeGreaterThanOrEqual(least);
    expect(pauseMs).toBeLessThanOrEqual(most);
  }
});
