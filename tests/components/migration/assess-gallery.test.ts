/** The gallery of clusters: each report is as it was. A change is written by `npx tsx scripts/assess-gallery.ts`, and reviewed. */
import { readdirSync, readFileSync } from "node:fs";
import { findingCodes } from "@longshore/migration";
import { describe, expect, it } from "vitest";
import { exhibits, reportOn } from "./gallery/gallery.ts";

const reports = new URL("./gallery/reports/", import.meta.url);
const codesIn = (text: string) => new Set([...text.matchAll(/^(LS\d{4}) /gm)].map(([, code]) => code));

describe("the report on a cluster of the gallery", () => {
  it.each(Object.entries(exhibits))("%s", async (name, exhibit) => {
    expect(await reportOn(exhibit)).toBe(readFileSync(new URL(`${name}.txt`, reports), "utf8"));
  });

  it("is there for each, and for no other", () => {
    expect(readdirSync(reports).sort()).toEqual(
      Object.keys(exhibits)
        .map((name) => `${name}.txt`)
        .sort(),
    );
  });

  it("together they show every code that a sound dump can have", () => {
    const shown = codesIn(
      readdirSync(reports)
        .map((file) => readFileSync(new URL(file, reports), "utf8"))
        .join("\n"),
    );
    // What could not be looked at, and what was accepted, has tests of its own.
    const elsewhere = ["LS1001", "LS1002", "LS1003", "LS1004", "LS1006"];
    const missing = findingCodes.map(({ code }) => code).filter((code) => !shown.has(code));
    expect(missing).toEqual(elsewhere);
  });
});
