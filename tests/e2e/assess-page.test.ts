/** The page of an assessment, opened from disk in a browser: its policy lets its own script run, and nothing that was found does. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { longshore } from "./support/run-command.ts";

const CHROMIUM = "/usr/bin/chromium";
const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"];
const dir = mkdtempSync(join(tmpdir(), "ls-page-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const attachment = (name: string, nodeName: string) => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "VolumeAttachment",
  metadata: { name },
  spec: { attacher: "ebs.csi.aws.com", nodeName, source: { persistentVolumeName: "pv" } },
});
const dump = {
  apiVersion: "v1",
  kind: "List",
  items: [
    { apiVersion: "v1", kind: "Node", metadata: { name: "n1" } },
    attachment("csi-1", "gone-1"),
    attachment("csi-2", '<img src=x onerror="document.title=1">'),
  ],
};

const missing = existsSync(CHROMIUM)
  ? ""
  : ` (skipped: there is no ${CHROMIUM}; install the package chromium)`;
test.skipIf(missing !== "")(`the page is searched, filtered and printed${missing}`, async () => {
  const file = join(dir, "dump.json");
  const report = join(dir, "report.html");
  writeFileSync(file, JSON.stringify(dump));
  // A dump without CSINodes leaves the verdict open.
  expect(await longshore("assess", "-f", file, "-o", `html=${report}`)).toMatchObject({ code: 3 });
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
  try {
    const page = await browser.newPage({ viewport: { width: 390, height: 800 }, colorScheme: "dark" });
    const complaints: string[] = [];
    const asked: string[] = [];
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(pathToFileURL(report).href);
    expect(await page.title()).toBe("Assessment of volumes: CANNOT DETERMINE");
    const rows = page.locator("tbody tr:visible");
    const all = await rows.count();
    expect(all).toBeGreaterThan(2);
    await page.keyboard.press("/");
    await page.keyboard.type("gone-1 ls15");
    expect(await rows.count()).toBe(1);
    expect(await page.textContent("#shown")).toBe(`1 of ${all} findings`);
    await page.fill("#find", "");
    await page.uncheck("input[value=unknown]");
    expect(await rows.count()).toBe(2);
    const background = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    expect(await background()).toBe("rgb(20, 24, 29)");
    await page.emulateMedia({ colorScheme: "light" });
    expect(await background()).toBe("rgb(255, 255, 255)");
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await page.evaluate("document.querySelector('details').open = false");
    await page.pdf();
    expect(await page.evaluate("document.querySelector('details').open")).toBe(true);
    expect([complaints, asked]).toEqual([[], [pathToFileURL(report).href]]);
  } finally {
    await browser.close();
  }
});
