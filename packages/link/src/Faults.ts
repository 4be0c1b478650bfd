import type { ReceiverFaults } from "@pure-link/receiver"
import type { SenderFaults } from "@pure-link/sender"

/**
 * Deliberate faults of both machines, for tests of the tests: a system test that stays green with one of them switched
 * on does not test what it says. Nothing else may ever set them.
 */
export interface DeliberateFaults extends ReceiverFaults, SenderFaults {}
