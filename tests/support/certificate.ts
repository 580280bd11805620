/** The file of a certificate for 127.0.0.1 and of its key. Nobody trusts it yet, and it is valid until 2120. */
export const CERTIFICATE = new URL('certificate.pem', import.meta.url).pathname;
