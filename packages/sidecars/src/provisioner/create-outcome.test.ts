import { CsiCallError, grpcCodes } from "@longshore/csi";
import { describe, expect, it } from "vitest";
import { ProvisionError, provesAbsence, stateAfterCreateError } from "./create-outcome.ts";

const answer = (code: (typeof grpcCodes)[number]) =>
  new CsiCallError("CreateVolume", code, "as the test asked");
const uncertain = ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "ABORTED"];
const proofs = ["INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED"];
const failures = grpcCodes.filter((code) => code !== "OK");

describe("a failed CreateVolume", () => {
  it.each(failures)("%s", (code) => {
    const state = stateAfterCreateError(answer(code), false);
    expect(state).toBe(uncertain.includes(code) ? "Background" : "Finished");
    const error = new ProvisionError(state, "CreateVolume", { cause: answer(code) });
    expect(provesAbsence(error, false)).toBe(!uncertain.includes(code));
    expect(provesAbsence(error, true)).toBe(proofs.includes(code));
  });

  it("may be tried on another node only when there is no room here", () => {
    expect(stateAfterCreateError(answer("RESOURCE_EXHAUSTED"), true)).toBe("Reschedule");
    expect(stateAfterCreateError(answer("OUT_OF_RANGE"), true)).toBe("Finished");
  });

  it("without an answer proves nothing", () => {
    expect(stateAfterCreateError(new Error("socket closed"), true)).toBe("Background");
    const unanswered = new CsiCallError("CreateVolume", "INVALID_ARGUMENT", "", { answered: false });
    expect(stateAfterCreateError(unanswered, true)).toBe("Background");
  });

  it("whose volume we have deleted ourselves leaves none", () => {
    expect(provesAbsence(new ProvisionError("Finished", "cannot be translated"), true)).toBe(true);
    expect(provesAbsence(new ProvisionError("NoChange", "not asked"), false)).toBe(false);
  });
});
