import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { describe, expect, test } from "vitest";

const CHROMIUM = "/usr/bin/chromium";
const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const entry = fileURLToPath(new URL("../../packages/translation/src/index.ts", import.meta.url));

/** The package as one script that needs nothing of Node; building fails where it imports a module of Node. */
async function bundle(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    platform: "browser",
    format: "iife",
    globalName: "translation",
    write: false,
    minify: true,
  });
  return outputFiles[0]?.text ?? "";
}

describe("the translation package in a browser", () => {
  test("bundles into one small script without any dependency", async () => {
    const text = await bundle();
    expect(text.length).toBeLessThan(100_000);
    expect(text).not.toMatch(/\brequire\(|node:/);
  });

  const missing = existsSync(CHROMIUM)
    ? ""
    : ` (skipped: there is no ${CHROMIUM}; install the package chromium)`;
  test.skipIf(missing !== "")(`translates there${missing}`, async () => {
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
    try {
      const page = await browser.newPage();
      await page.addScriptTag({ content: await bundle() });
      const answer = await page.evaluate(`(() => {
        const pv = { metadata: { name: "pv" }, spec: { rbd: { image: "i", monitors: ["a", "b"], pool: "pöl" } } };
        const csi = translation.translateInTreePVToCSI(pv);
        let refusal;
        try { translation.translateCSIPVToInTree(pv); } catch (error) { refusal = [error.name, error.field]; }
        return {
          handle: csi.spec.csi.volumeHandle,
          back: translation.translateCSIPVToInTree(csi).spec.rbd.image,
          sameMetadata: csi.metadata === pv.metadata,
          refusal,
        };
      })()`);
      expect(answer).toEqual({
        handle: "mig_mons-b345e1dc09f20fdefdea469f09167892_image-i_70c3b66c",
        back: "i",
        sameMetadata: true,
        refusal: ["TranslationError", "spec.csi"],
      });
    } finally {
      await browser.close();
    }
  });
});
