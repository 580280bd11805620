/** Decides from `WWW-Authenticate` whether a 401 asks for a new token, or for something else, such as another sign-in. */

/** A longer header is not read. */
const LONGEST = 4096;

/** The parameters that are relayed. Others may contain the upstream's address: `error_uri`, `resource_metadata`. */
const RELAYED = ['error', 'acr_values', 'max_age', 'scope', 'realm', 'error_description'];

/** The errors that a new token would not remove. APIs name an expired token in many ways, so any other asks for one. */
const NEEDS_MORE = new Set<string | undefined>(['insufficient_user_authentication', 'insufficient_scope']);

/** The source of a pattern. @see RFC 9110 section 5.6.2 */
export const TOKEN = "[!#$%&'*+.^_`|~\\w-]+";
const QUOTED = '"((?:[ !#-\\[\\]-~]|\\\\[ -~])*)"';
/** A parameter, perhaps after the scheme that begins its challenge; or a scheme alone, or with credentials (token68). */
const ELEMENT = new RegExp(
  `(?:(?:(${TOKEN}) +)?(${TOKEN})[ \\t]*=[ \\t]*(?:(${TOKEN})|${QUOTED})|(${TOKEN})(?: +[\\w.~+/-]+=*)?)[ \\t]*(?:,[ \\t,]*|$)`,
  'gy',
);

type Challenge = Map<string, string>;

/** Whether a new access token may help: not when the upstream asks for more than that. */
export function mayNeedNewToken({ status, headers }: Pick<Response, 'status' | 'headers'>): boolean {
  return status === 401 && bearerChallenge(headers.get('www-authenticate')) === undefined;
}

/**
 * Returns the Bearer challenges, rebuilt from their parameters, when all that name an error ask for another sign-in or a
 * wider scope. For any other scheme, a browser would open a dialogue.
 *
 * @see RFC 6750 section 3.1, RFC 9470 section 3
 */
export function bearerChallenge(header: string | null): string | undefined {
  if (header === null || header.length > LONGEST) return undefined;
  const challenges = parseBearer(header).filter((challenge) => challenge.get('error'));
  if (!challenges.length || !challenges.every((challenge) => NEEDS_MORE.has(challenge.get('error'))))
    return undefined;
  return challenges.map(written).join(', ');
}

/**
 * The parameters of each Bearer challenge, by lower-case name; none when the header is malformed.
 *
 * @see RFC 9110 sections 11.2 and 11.6.1: commas separate challenges and parameters alike
 */
function parseBearer(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  let challenge: Challenge | undefined;
  let end = 0;
  for (const [element, scheme, name, token, quoted, bare] of header.matchAll(ELEMENT)) {
    end += element.length;
    const begun = scheme ?? bare;
    if (begun !== undefined) {
      challenge = new Map();
      if (begun.toLowerCase() === 'bearer') challenges.push(challenge);
    }
    if (name === undefined) continue;
    const key = name.toLowerCase();
    if (!challenge || challenge.has(key)) return [];
    challenge.set(key, token ?? quoted?.replace(/\\(.)/g, '$1') ?? '');
  }
  return end === header.length ? challenges : [];
}

function written(challenge: Challenge): string {
  const parameters = RELAYED.filter((name) => challenge.has(name)).map((name) => {
    const value = challenge.get(name)?.replace(/["\\]/g, '\\$&');
    return `${name}="${value}"`;
  });
  return `Bearer ${parameters.join(', ')}`;
}
