/** What a contender is: how it is started in front of the upstream. */

export interface Place {
  /** For its configuration and temporary files. */
  readonly folder: string;
  readonly port: number;
  readonly upstreamPort: number;
}

export interface Launch {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Contender {
  readonly id: string;
  readonly title: string;
  /** Programs besides Bun; without one of them it is left out. */
  readonly needs: readonly string[];
  /** Names of `versions()` that it consists of. */
  readonly parts: readonly string[];
  launch(place: Place): Launch | Promise<Launch>;
}

/** A program of this folder or the project, for Bun or Node. */
export function script(path: string): string {
  return new URL(path, import.meta.url).pathname;
}
