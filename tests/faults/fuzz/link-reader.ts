/** Takes a `Link` value apart, as RFC 8288 section 3 has it. */

export interface LinkMember {
  readonly target: string;
  /** All that follows the target, as it was written. */
  readonly parameters: string;
}

/** Undefined when it is no list of links. */
export function readLinks(value: string): LinkMember[] | undefined {
  const members: LinkMember[] = [];
  for (let rest = value; ; ) {
    rest = rest.replace(/^[ \t,]+/, '');
    if (rest === '') return members;
    const [whole, target, parameters] =
      /^<([^<>]*)>((?:[ \t]*;[^",;]*(?:"(?:[^"\\]|\\.)*"[ \t]*)?(?=[;,]|$))*[ \t]*)(?=,|$)/.exec(rest) ?? [];
    if (whole === undefined || target === undefined || parameters === undefined) return undefined;
    members.push({ target, parameters: parameters.trim() });
    rest = rest.slice(whole.length);
  }
}
