/** What a source imports. */
import { isNode, type Source, walk } from "./source.ts";

/** One import: the module as it is written, and where. */
export interface ImportedModule {
  readonly module: string;
  readonly offset: number;
}

/** Every import and re-export of a source, of types and at run time included, in the order of the text. */
export function importedModules(source: Source): ImportedModule[] {
  const found: ImportedModule[] = [];
  walk(source.program, (node) => {
    if (!/^(?:TSImportType|Import(?:Declaration|Expression)|Export(?:Named|All)Declaration)$/.test(node.type))
      return;
    if (isNode(node.source)) found.push({ module: String(node.source.value), offset: node.start });
  });
  return found;
}
