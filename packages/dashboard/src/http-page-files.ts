/** The files of the page: what stands in `static/`, and the page's own modules as they were built. */
import { readdir, readFile } from "node:fs/promises";

/** A file as it is served. */
export interface PageFile {
  readonly contentType: string;
  readonly body: Buffer;
}

const contentTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

/** The page was not built. */
export class PageNotBuiltError extends Error {
  override readonly name = "PageNotBuiltError";
}

/** Reads all files, by the name under which they are served. @throws PageNotBuiltError */
export async function readPageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const files = new Map<string, PageFile>();
  // Both paths are the same seen from the sources and from the build.
  for (const directory of [
    new URL("../static/", import.meta.url),
    new URL("../dist/page/", import.meta.url),
  ]) {
    const names = await readdir(directory).catch((cause) => {
      throw new PageNotBuiltError("the dashboard's page is not built; run: npm run build", { cause });
    });
    for (const name of names) {
      const contentType = contentTypes[name.slice(name.lastIndexOf(".") + 1)];
      if (contentType === undefined) continue;
      files.set(name, { contentType, body: await readFile(new URL(name, directory)) });
    }
  }
  return files;
}
