import { describe, expect, it } from "vitest";
import { assess } from "./assess.ts";
import { diffOf, EarlierReportError } from "./assessment-diff.ts";
import { found } from "./assessment-finding.ts";

import { InventoryBuilder } from "./inventory-builder.ts";
import { renderReport } from "./report/report.ts";
import { parseSuppressions, SuppressionError, suppressionOfFinding } from "./suppressions.ts";

const now = new Date("2026-06-15T12:00:00Z");
const entry = (fields: string) =>
  `suppressions:\n  - code: LS1102\n    ${fields.replaceAll("; ", "\n    ")}\n`;
const whole = "object: Node build-*; reason: no volumes there; until: 2026-12-31";

describe("the file of suppressions", () => {
  it("has a code, an object, a reason and an end", () => {
    expect(parseSuppressions(entry(whole))).toEqual([
      { code: "LS1102", object: "Node build-*", reason: "no volumes there", until: "2026-12-31" },
    ]);
    expect(parseSuppressions(entry("reason: r; until: 2026-12-31"))).toMatchObject([{ object: "*" }]);
  });

  it.each<readonly [string, string, string]>([
    ["no list", "code: LS1102", "`suppressions` is missing"],
    ["no YAML", "suppressions: [", "it is no YAML"],
    [
      "an unknown code",
      entry(whole).replace("LS1102", "LS9999"),
      'suppressions[0].code: "LS9999" is not a code',
    ],
    ["no reason", entry("until: 2026-12-31"), "suppressions[0].reason: missing; write why"],
    ["no end", entry("reason: r"), "suppressions[0].until: missing; write the last day"],
    ["a day that is none", entry("reason: r; until: '2026-02-30'"), "suppressions[0].until: no day"],
    ["an unknown field", entry(`${whole}; why: x`), "suppressions[0].why: not a field"],
    ["an entry that is none", "suppressions: [3]", "suppressions[0].code: missing"],
  ])("is refused with field and remedy: %s", (_what, text, words) => {
    expect(() => parseSuppressions(text)).toThrow(SuppressionError);
    expect(() => parseSuppressions(text)).toThrow(words);
  });

  it.each<readonly [string, string, boolean]>([
    ["Node build-*", "Node build-1", true],
    ["Node build-*", "Node web-1", false],
    ["*", "Node web-1", true],
    ["Node *-1*", "Node web-12", true],
    ["Node a*a", "Node a", false],
    ["Node web", "Node web-1", false],
  ])("%s covers %s: %s", (object, name, covers) => {
    const [suppression] = parseSuppressions(entry(`object: "${object}"; reason: r; until: 2026-12-31`));
    const finding = found("LS1102", { object: name, evidence: "" });
    expect(
      suppressionOfFinding(suppression === undefined ? [] : [suppression], finding, now) !== undefined,
    ).toBe(covers);
  });
});

describe("an assessment with suppressions", () => {
  const inventory = () => new InventoryBuilder().build(now);
  const code = (of: string) => ({ code: of, object: "*", reason: "known", until: "2026-06-15" });

  it("does not count what is suppressed on its last day, and still has it", () => {
    const without = assess(inventory());
    const codes = [...new Set(without.findings.map((finding) => finding.code))];
    expect(without.verdict).toBe("CANNOT DETERMINE");
    const assessment = assess(inventory(), { suppressions: codes.map(code) });
    expect([assessment.verdict, assessment.findings]).toEqual(["READY", []]);
    expect(assessment.suppressed.map(({ finding }) => finding)).toEqual(without.findings);
  });

  it("counts it again on the day after, with a finding about the entry (LS1006)", () => {
    const suppressions = [{ ...code("LS1003"), until: "2026-06-14" }];
    const { findings, suppressed } = assess(inventory(), { suppressions });
    expect(findings.map((finding) => finding.code)).toEqual(expect.arrayContaining(["LS1003", "LS1006"]));
    expect(suppressed).toEqual([]);
  });
});

describe("what has changed since an earlier report", () => {
  const at = (names: readonly string[]) =>
    names.map((name) => ({ ...found("LS1501", { object: name, evidence: name }), when: "now" as const }));
  const report = (names: readonly string[]) =>
    renderReport("json", {
      at: now,
      clusterMinor: 27,
      targetMinor: undefined,
      verdict: "WARNINGS",
      targetVerdict: undefined,
      findings: at(names),
      suppressed: [],
      looked: {},
    });

  it("is what is new and what is gone; the values that were seen do not matter", () => {
    const same = { ...at(["b"])[0], evidence: "another value" } as ReturnType<typeof at>[number];
    const diff = diffOf([same, ...at(["c"])], report(["a", "b"]));
    expect(diff.since).toBe("2026-06-15T12:00:00.000Z");
    expect(diff.added.map(({ object }) => object)).toEqual(["c"]);
    expect(diff.gone).toMatchObject([{ code: "LS1501", object: "a" }]);
  });

  it.each(["{", "{}", '{"apiVersion":"longshore.dev/assessment/v1","at":"x","findings":[1]}'])(
    "refuses what is no report: %s",
    (text) => expect(() => diffOf([], text)).toThrow(EarlierReportError),
  );
});
