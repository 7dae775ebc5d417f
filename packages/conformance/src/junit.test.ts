import { expect, test } from "vitest";
import { junitOf } from "./junit.ts";
import type { ConformanceReport } from "./run-conformance.ts";

const rule = { sentence: "it must hold", spec: "CreateVolume", elapsedMs: 1500, verb: "MUST" as const };
const report: ConformanceReport = {
  driver: {
    name: "a&b",
    vendorVersion: "1",
    nodeId: "n",
    capabilities: { plugin: [], controller: [], groupController: [], node: [] },
  },
  results: [
    { ...rule, id: "identity.a.b", outcome: "passed" },
    { ...rule, id: "controller.a.b", outcome: "skipped", message: 'no "secrets"' },
    {
      ...rule,
      id: "controller.a.c",
      outcome: "failed",
      message: "x < 1 \u0000\ud800 ünï 🚢",
      calls: [{ rpc: "CreateVolume", code: "OK", request: { name: "<n>" }, elapsedMs: 1 }],
    },
  ],
  passed: 1,
  failed: 1,
  warned: 0,
  skipped: 1,
  leftovers: ["volume v: gone astray"],
  elapsedMs: 4500,
};

test("a report is JUnit XML, whatever texts it holds", () => {
  expect(junitOf(report)).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="CSI conformance of a&amp;b" tests="4" failures="2" skipped="1" time="4.500">
  <testsuite name="csi.identity" tests="1" failures="0" errors="0" skipped="0" time="1.500">
    <testcase classname="csi.identity" name="identity.a.b" time="1.500"/>
  </testsuite>
  <testsuite name="csi.controller" tests="2" failures="1" errors="0" skipped="1" time="3.000">
    <testcase classname="csi.controller" name="controller.a.b" time="1.500">
      <skipped message="no &quot;secrets&quot;"/>
    </testcase>
    <testcase classname="csi.controller" name="controller.a.c" time="1.500">
      <failure message="x &lt; 1 \ufffd\ufffd ünï 🚢">it must hold (CSI specification, CreateVolume)&#10;x &lt; 1 \ufffd\ufffd ünï 🚢&#10;CreateVolume {&quot;name&quot;:&quot;&lt;n&gt;&quot;} -&gt; OK</failure>
    </testcase>
  </testsuite>
  <testsuite name="csi.clean-up" tests="1" failures="1" errors="0" skipped="0" time="0.000">
    <testcase classname="csi" name="clean-up" time="0.000">
      <failure message="what the checks made is still there">volume v: gone astray</failure>
    </testcase>
  </testsuite>
</testsuites>
`);
});

test("without leftovers there is no such suite", () => {
  const text = junitOf({ ...report, leftovers: [] });
  expect(text).toContain('tests="3" failures="1" skipped="1"');
  expect(text).not.toContain("clean-up");
});
