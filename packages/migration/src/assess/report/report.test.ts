import { Ajv2020 } from "ajv/dist/2020.js";
import { load } from "js-yaml";
import { describe, expect, it } from "vitest";
import type { Assessment } from "../assess.ts";
import { found } from "../assessment-finding.ts";
import { assessmentSchema } from "./assessment-schema.ts";
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
  suppressed: [],
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

  it("JSON keeps its schema, with what is suppressed and what has changed, and the schema refuses what is not the form", () => {
    const isValid = new Ajv2020({ allErrors: true }).compile(assessmentSchema);
    const full: Assessment = {
      ...assessment([finding("a")]),
      suppressed: [{ finding: finding("b"), reason: "known", until: "2027-01-31" }],
      diff: {
        since: "2025-12-01T00:00:00.000Z",
        added: [finding("a")],
        gone: [{ code: "LS1501", object: "x" }],
      },
    };
    const json = JSON.parse(renderReport("json", full));
    expect([isValid(json), isValid.errors]).toEqual([true, null]);
    expect(json).toMatchObject({ suppressed: [{ object: "VolumeAttachment b", reason: "known" }] });
    for (const broken of [
      { ...json, apiVersion: "v2" },
      { ...json, counts: {} },
      { ...json, findings: [{}] },
    ]) {
      expect(isValid(broken)).toBe(false);
    }
  });

  it("the table says what is suppressed, new and gone", () => {
    const text = renderReport("table", {
      ...assessment([finding("a")]),
      suppressed: [{ finding: finding("b"), reason: "known", until: "2027-01-31" }],
      diff: { since: "2025-12-01T00:00:00.000Z", added: [finding("a")], gone: [] },
    });
    expect(text).toContain("suppressed: 1; `-o json` has them with their reasons\n");
    expect(text).toContain(
      "since the report of 2025-12-01T00:00:00.000Z\nnew: 1\n  - LS1501 VolumeAttachment a\ngone: 0\n",
    );
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
    const odd = renderReport("junit", assessment([finding("a", "\u0000 \u001b[0m \ufffe\uffff ]]>")]));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not be there
    expect(odd).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/);
    expect(odd).toContain("]]&gt;");
    const error = { ...finding("a"), severity: "error" as const };
    expect(renderReport("junit", assessment([error]))).toContain('failures="1"');
  });

  it("Markdown has a table for each code, and no name ends a cell or makes markup", () => {
    const text = renderReport("markdown", assessment([finding("a|b", "<img src=x> [a](b)")]));
    expect(text).toContain("| target | 1.31 | NOT READY |");
    expect(text).toContain(
      "| VolumeAttachment a\\|b | spec.nodeName | \\<img src=x\\> \\[a\\](b) | Make certain that the machine is gone, then delete the VolumeAttachment. | now and target |",
    );
  });

  it("CSV quotes what needs it, and a spreadsheet takes no value for a formula", () => {
    const [head, row] = renderReport("csv", assessment([finding("a", '=cmd|"x", y')])).split("\r\n");
    expect(head).toBe("code,severity,when,title,object,field,evidence,remedy");
    expect(row).toContain(`VolumeAttachment a,spec.nodeName,"'=cmd|""x"", y",`);
  });

  it("Prometheus gets the verdicts and a count for each code, 0 for those that were not found", () => {
    const text = renderReport("prometheus", assessment([finding("a"), finding("b")]));
    expect(text).toContain('longshore_assessment_verdict{at="now",verdict="WARNINGS"} 1\n');
    expect(text).toContain('longshore_assessment_verdict{at="target",verdict="READY"} 0\n');
    expect(text).toContain('longshore_assessment_findings{code="LS1501",severity="warning",when="both"} 2\n');
    expect(text).toContain('longshore_assessment_findings{code="LS1103",severity="error",when="now"} 0\n');
    expect(text).toContain('longshore_assessment_objects{kind="volumes"} 2\n');
    expect(text).toContain("longshore_assessment_timestamp_seconds 1767268800\n");
  });

  it("the page fetches nothing, runs its own script alone, and takes nothing that was found for markup", () => {
    const page = renderReport("html", assessment([finding("a", "<script>alert(1)</script>")]));
    expect(page).toContain("default-src 'none'");
    expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(page.match(/<script/g)).toHaveLength(1);
    expect(page).not.toMatch(/(?:src|href)="/);
  });

  it("every form ends with a line break and is made of a report without findings", () => {
    for (const form of reportForms) expect(renderReport(form, assessment([]))).toMatch(/\n$/);
  });
});
