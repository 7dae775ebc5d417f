import { SimulatedHost, VirtualClock } from "@longshore/runtime";
import { expect, it } from "vitest";
import { fencedPrograms } from "./fenced-programs.ts";

it("runs no program once the lease may have lapsed, although no timer has fired yet (contract.md C2)", async () => {
  const clock = new VirtualClock();
  const runs: (readonly string[])[] = [];
  const driver = async ({ args }: { readonly args: readonly string[] }) => {
    runs.push(args);
    return { code: 0, stdout: "", stderr: "" };
  };
  const term = { lease: "manager", endsMs: () => 1_000, signal: new AbortController().signal };
  const host = new SimulatedHost({ programs: { driver } });
  const fenced = fencedPrograms(host, clock, term);
  const run = (command: string, at = fenced) =>
    at.runProgram("driver", { args: [command], signal: new AbortController().signal });
  await run("detach");
  await clock.advance(1_000);
  const refused = { code: "ECANCELED", cause: { name: "LeadershipLostError" } };
  await expect(run("after")).rejects.toMatchObject(refused);
  const renewed = { ...term, endsMs: () => 2_000 };
  await run("renewed", fencedPrograms(host, clock, renewed));
  const ended = fencedPrograms(host, clock, { ...renewed, signal: AbortSignal.abort() });
  await expect(run("ended", ended)).rejects.toMatchObject(refused);
  expect(runs).toEqual([["detach"], ["renewed"]]);
  await fenced.makeDirectory("/d");
  expect(await host.stat("/d")).toMatchObject({ kind: "directory" });
});
