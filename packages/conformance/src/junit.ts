/** A report in the form of JUnit, which CI systems read. */
import { groupOf } from "./check-result.ts";
import type { ConformanceReport } from "./run-conformance.ts";

/** The XML text: one suite a service, one case a check. */
export function junitOf(report: ConformanceReport): string {
  const { driver, results, leftovers } = report;
  const groups = [...new Set(results.map(({ id }) => groupOf(id)))];
  const suites = groups.map((group) => {
    const own = results.filter(({ id }) => groupOf(id) === group);
    const cases = own.map(({ id, sentence, spec, outcome, message = "", elapsedMs, calls = [] }) => {
      const start = `    <testcase classname="csi.${group}" name="${escaped(id)}" time="${secondsOf(elapsedMs)}"`;
      if (outcome === "passed") return `${start}/>`;
      if (outcome === "warned") {
        // JUnit has no warning: a case that has passed, with a text.
        return `${start}>\n      <system-out>${escaped(`warning: ${message}`)}</system-out>\n    </testcase>`;
      }
      if (outcome === "skipped") {
        return `${start}>\n      <skipped message="${escaped(message)}"/>\n    </testcase>`;
      }
      const text = [`${sentence} (CSI specification, ${spec})`, message, ...calls.map(callText)].join("\n");
      return `${start}>\n      <failure message="${escaped(message)}">${escaped(text)}</failure>\n    </testcase>`;
    });
    return suiteText(`csi.${group}`, cases, {
      failures: own.filter(({ outcome }) => outcome === "failed").length,
      skipped: own.filter(({ outcome }) => outcome === "skipped").length,
      elapsedMs: own.reduce((sum, { elapsedMs }) => sum + elapsedMs, 0),
    });
  });
  if (leftovers.length > 0) {
    const text = escaped(leftovers.join("\n"));
    const failure = `    <testcase classname="csi" name="clean-up" time="0.000">\n      <failure message="what the checks made is still there">${text}</failure>\n    </testcase>`;
    suites.push(suiteText("csi.clean-up", [failure], { failures: 1, skipped: 0, elapsedMs: 0 }));
  }
  if (report.notRun !== undefined) {
    const message = `${report.notRun} checks were not run`;
    const failure = `    <testcase classname="csi" name="interrupted" time="0.000">\n      <failure message="${message}">interrupted</failure>\n    </testcase>`;
    suites.push(suiteText("csi.interrupted", [failure], { failures: 1, skipped: 0, elapsedMs: 0 }));
  }
  const added = (leftovers.length > 0 ? 1 : 0) + (report.notRun === undefined ? 0 : 1);
  const tests = results.length + added;
  const failures = report.failed + added;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${escaped(`CSI conformance of ${driver.name}`)}" tests="${tests}" failures="${failures}" skipped="${report.skipped}" time="${secondsOf(report.elapsedMs)}">`,
    ...suites,
    "</testsuites>",
    "",
  ].join("\n");
}

function suiteText(
  name: string,
  cases: readonly string[],
  { failures, skipped, elapsedMs }: { failures: number; skipped: number; elapsedMs: number },
): string {
  return `  <testsuite name="${name}" tests="${cases.length}" failures="${failures}" errors="0" skipped="${skipped}" time="${secondsOf(elapsedMs)}">\n${cases.join("\n")}\n  </testsuite>`;
}

function callText(call: {
  readonly rpc: string;
  readonly code: string;
  readonly message?: string;
  readonly request: unknown;
}): string {
  const { rpc, code, message, request } = call;
  return `${rpc} ${JSON.stringify(request)} -> ${code}${message === undefined ? "" : ` (${message})`}`;
}

function secondsOf(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** Text for XML 1.0: its own characters escaped, those that it cannot hold replaced. */
function escaped(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to be replaced
      .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
      .replaceAll(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd")
      // First of the escapes: the others bring an ampersand each.
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      .replaceAll('"', "&quot;")
      // A parser turns a line break in an attribute into a space.
      .replaceAll("\n", "&#10;")
  );
}
