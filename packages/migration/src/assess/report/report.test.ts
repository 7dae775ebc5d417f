import { load } from "js-yaml";
import { describe, expect, it } from "vitest";
import type { Assessment } from "../assess.ts";
import { found } from "../assessment-finding.ts";
import { renderReport, reportForms } from "./report.ts";

const finding = (name: string, evidence = "there is no Node <gone> & more") => ({
  ...found("LS1501", { object: `VolumeAttachment ${name}`, field: "spec.nodeName", evidence }),
  when: "both" as const,
});
const assessment = (findings: Assessment["findings"]): Assessment => ({
  at: new Date("2026-01-01T12:00:00Z"),
  clusterMinor: 27,
  targetMinor: 31,
  verdict: "WARNINGS",
  targetVerdict: "NOT READY",
  findings,
  looked: { volumes: 2, pods: 3 },
});

describe("the forms of a report", () => {
  it("the table has the verdicts and counts first, then the findings of each code", () => {
    expect(renderReport("table", assessment([finding("a")]))).toBe(
      `now     Kubernetes 1.27: WARNINGS
target  Kubernetes 1.31: NOT READY
findings: 0 errors, 0 unknown, 1 warnings, 0 notes
looked at: 2 volumes, 3 pods

LS1501 warning: a VolumeAttachment names a node that is not there (1)
  - VolumeAttachment a, spec.nodeName: there is no Node <gone> & more
  -> Make certain that the machine is gone, then delete the VolumeAttachment.

\`longshore explain CODE\` says more of a code.
`,
    );
  });

  it("no line of the table is longer than 100 columns, whatever a name is, and none steers a terminal", () => {
    const text = renderReport(
      "table",
      assessment([finding("x".repeat(250), "\u001b[31mred\nnew line ".repeat(20))]),
    );
    const lines = text.split("\n");
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(text).not.toContain("\u001b");
    expect(lines.filter((line) => line.startsWith("new"))).toEqual([]);
  });

  it("the table shows ten objects of a code, the wide one all", () => {
    const many = assessment(Array.from({ length: 12 }, (_, i) => finding(`va-${i}`)));
    expect(renderReport("table", many)).toContain("… and 2 more");
    expect(renderReport("table", many)).not.toContain("va-11");
    expect(renderReport("wide", many)).toContain("va-11");
  });

  it("JSON and YAML say the same, with code, link and version", () => {
    const json: unknown = JSON.parse(renderReport("json", assessment([finding("a")])));
    expect(load(renderReport("yaml", assessment([finding("a")])))).toEqual(json);
    expect(json).toMatchObject({
      apiVersion: "longshore.dev/assessment/v1",
      now: { version: "1.27", verdict: "WARNINGS" },
      target: { version: "1.31", verdict: "NOT READY" },
      counts: { error: 0, unknown: 0, warning: 1, info: 0 },
      findings: [{ code: "LS1501", link: "docs/guides/assess.md#ls1501" }],
    });
  });

  it("SARIF refers each result to its rule", () => {
    const { runs } = JSON.parse(renderReport("sarif", assessment([finding("a"), finding("b")])));
    expect(runs[0].tool.driver.rules.map(({ id }: { id: string }) => id)).toEqual(["LS1501"]);
    expect(runs[0].results).toMatchObject([{ ruleIndex: 0, level: "warning" }, { ruleIndex: 0 }]);
  });

  it("JUnit escapes what was seen, and fails on errors alone", () => {
    const warning = renderReport("junit", assessment([finding("a")]));
    expect(warning).toContain("&lt;gone&gt; &amp; more");
    expect(warning).toContain('failures="0"');
    const error = { ...finding("a"), severity: "error" as const };
    expect(renderReport("junit", assessment([error]))).toContain('failures="1"');
  });

  it("every form ends with a line break and is made of a report without findings", () => {
    for (const form of reportForms) expect(renderReport(form, assessment([]))).toMatch(/\n$/);
  });
});
