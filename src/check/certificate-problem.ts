/** Says what is wrong with the certificate of a server, and what to do about it. */

import { readFileSync } from 'node:fs';

/** Bun's own setting: a file of authorities that it trusts, too. */
const AUTHORITIES = 'NODE_EXTRA_CA_CERTS';

const TEXTS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has a certificate that has expired: renew it',
  CERT_NOT_YET_VALID: 'has a certificate that is not valid yet: is the clock of this machine right?',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another host name',
};

const STRANGERS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'has a certificate that it has signed itself: name it, or its authority,',
  SELF_SIGNED_CERT_IN_CHAIN: 'has a certificate of an unknown authority: name that',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'has a certificate of an unknown authority: name that',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'has a certificate of an unknown authority: complete its chain, or name that',
};

/** @returns the end of a sentence about the server; undefined when the code is none of a certificate */
export function certificateProblem(code: string): string | undefined {
  const stranger = STRANGERS[code];
  if (stranger === undefined) return TEXTS[code];
  const place = isTooLate()
    ? `${AUTHORITIES} in the environment: Bun reads that before it reads .env, where it is now`
    : AUTHORITIES;
  return `${stranger} in ${place}`;
}

/** Whether Bun knows the authorities' file from `.env` alone. @see proc(5), `/proc/pid/environ` */
function isTooLate(): boolean {
  try {
    const atTheStart = readFileSync('/proc/self/environ', 'utf8').split('\0');
    const isThere = atTheStart.some((variable) => variable.startsWith(`${AUTHORITIES}=`));
    return Boolean(process.env[AUTHORITIES]) && !isThere;
  } catch {
    // Not every system says it.
    return false;
  }
}
