/** `npx tsx scripts/assess-gallery.ts`: writes the reports on the clusters of the gallery (`tests/components/migration/gallery`) again. */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { exhibits, reportOn } from "../tests/components/migration/gallery/gallery.ts";

const reports = new URL("../tests/components/migration/gallery/reports/", import.meta.url);
for (const file of readdirSync(reports)) rmSync(new URL(file, reports));
for (const [name, exhibit] of Object.entries(exhibits)) {
  writeFileSync(new URL(`${name}.txt`, reports), await reportOn(exhibit));
}
