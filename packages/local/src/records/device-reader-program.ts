/** The reader of records on a device, a program of its own: prints them as lines. Argument: the device. */
import { openSync, writeFileSync } from "node:fs";
import { recordsText } from "./device-records.ts";
import { readRecordsRoom } from "./process-device-contents.ts";

const [path = ""] = process.argv.slice(2);
writeFileSync(1, recordsText(readRecordsRoom(openSync(path, "r"))));
