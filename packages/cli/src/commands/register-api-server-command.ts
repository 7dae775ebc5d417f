/** `longshore apiserver …`: work on an API server's data, apart from running the server. */
import { type BackupSummary, backupStore, restoreStore } from "@longshore/apiserver";
import { systemClock } from "@longshore/runtime/basics";
import { restoredObjects } from "@longshore/storage";
import type { Command } from "commander";

/** Adds the verb. */
export function registerApiServerCommand(program: Command): void {
  const apiserver = program.command("apiserver").description("back up and restore the data of an API server");
  apiserver
    .command("backup")
    .description("write all objects to one file (mode 0600), whether the server runs or not")
    .requiredOption("--data-dir <dir>", "the data directory of the server")
    .requiredOption("--out <file>", "the backup; replaced when it is there, never left half written")
    .action(async ({ dataDir, out }: { dataDir: string; out: string }) => {
      say(`backed up to ${out}`, await backupStore(dataDir, out));
    });
  apiserver
    .command("restore")
    .description(
      "make the data of a server from a backup; stop the server first. Its Nodes list nothing as attached that CSI does not " +
        "attach: the attach/detach controller attaches it once more, and lists its device",
    )
    .requiredOption("--from <file>", "the backup")
    .requiredOption(
      "--data-dir <dir>",
      "a data directory without objects; certificates and tokens in it are kept",
    )
    .action(async ({ dataDir, from }: { dataDir: string; from: string }) => {
      say(`restored to ${dataDir}`, await restoreStore(from, dataDir, systemClock.now(), restoredObjects));
    });
}

function say(what: string, { objects, revision }: BackupSummary): void {
  process.stdout.write(`${what}: ${objects} objects, version ${revision}\n`);
}
