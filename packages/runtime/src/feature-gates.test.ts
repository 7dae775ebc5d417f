import { describe, expect, test } from "vitest";
import { FeatureGateError, featureGates, parseFeatureGates } from "./feature-gates.ts";
import { assertNever, InvariantError, invariant } from "./invariant.ts";

const registry = {
  CSIMigration: { default: true, stage: "beta" },
  CSIMigrationAWS: { default: false, stage: "beta" },
  Settled: { default: true, stage: "GA", locked: true },
} as const;

describe("feature gates", () => {
  test("defaults, and values over them", () => {
    const gates = featureGates(registry, { CSIMigrationAWS: true });
    expect(gates.values).toEqual({ CSIMigration: true, CSIMigrationAWS: true, Settled: true });
    expect(gates.enabled("CSIMigrationAWS")).toBe(true);
    expect(featureGates(registry).enabled("CSIMigrationAWS")).toBe(false);
  });

  test("two sets in one process do not touch each other", () => {
    const [a, b] = [featureGates(registry, { CSIMigration: false }), featureGates(registry)];
    expect([a.enabled("CSIMigration"), b.enabled("CSIMigration")]).toEqual([false, true]);
  });

  test("unknown and locked gates are refused, naming them", () => {
    expect(() => featureGates(registry, { Typo: true })).toThrow(
      'unknown feature gate "Typo"; known are CSIMigration',
    );
    const many = Object.fromEntries(
      Array.from("ABCDEFGHIJ", (x) => [`Gate${x}${x}`, registry.CSIMigration as never]),
    );
    const refusal = () => featureGates({ ...registry, ...many }, { CSIMigrationEBS: true });
    expect(refusal).toThrow(/the nearest of \d+ are CSIMigrationAWS, CSIMigration,( \w+,){5} \w+$/);
    expect(() => featureGates(registry, { Settled: false })).toThrow('"Settled" is locked to true');
    expect(featureGates(registry, { Settled: true }).enabled("Settled")).toBe(true);
    expect(() => featureGates(registry).enabled("Typo")).toThrow(FeatureGateError);
  });

  test.each([
    ["", {}],
    ["A=true", { A: true }],
    [" A=true , B=False,", { A: true, B: false }],
    ["A=true,A=false", { A: false }],
  ])("%j is parsed", (text, expected) => {
    expect(parseFeatureGates(text)).toEqual(expected);
  });

  test.each(["A", "A=1", "=true", "A=true B=true"])("%j is refused", (text) => {
    expect(() => parseFeatureGates(text)).toThrow(FeatureGateError);
  });
});

test("invariants throw a defect of their own", () => {
  expect(() => invariant(0, "zero is true")).toThrow(new InvariantError("invariant violated: zero is true"));
  expect(invariant(1, "one is true")).toBeUndefined();
  expect(() => assertNever({ kind: "odd" } as never)).toThrow('unexpected value: {"kind":"odd"}');
});
