import { CsiCallError, type GrpcCode, grpcCodes } from "@longshore/csi";
import { describe, expect, it } from "vitest";
import { isFinal, isInUse, isModifyInfeasible, isResizeInfeasible } from "./resize-errors.ts";

const error = (code: GrpcCode, answered = true) =>
  new CsiCallError("ControllerExpandVolume", code, "x", { answered });

describe("what an error says", () => {
  const uncertain = ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"];
  it.each(grpcCodes.filter((code) => code !== "OK"))("%s", (code) => {
    expect(isFinal(error(code))).toBe(!uncertain.includes(code));
    expect(isResizeInfeasible(error(code))).toBe(
      ["INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND"].includes(code),
    );
    expect(isModifyInfeasible(error(code))).toBe(code === "INVALID_ARGUMENT");
    expect(isInUse(error(code))).toBe(code === "FAILED_PRECONDITION");
  });

  it("nothing, if it is not the driver's answer", () => {
    for (const one of [error("INVALID_ARGUMENT", false), new Error("INVALID_ARGUMENT")]) {
      expect([isFinal(one), isResizeInfeasible(one), isModifyInfeasible(one), isInUse(one)]).toEqual(
        Array(4).fill(false),
      );
    }
  });
});
