//! Cases that are played again by clients over TCP. Their peers stay on UDP.

use super::way::over_tcp;
use super::{allocate, authentication, codec, dual, relaying, sha256};

#[test]
fn case_a10_unknown_required_attributes_over_tcp() {
    over_tcp(codec::case_a10_unknown_required_attributes);
}

#[test]
fn rfc_r007_r008_r009_r010_r037_unknown_and_unexpected_attributes_over_tcp() {
    over_tcp(codec::rfc_r007_r008_r009_r010_r037_unknown_and_unexpected_attributes);
}

#[test]
fn case_a11_a12_the_first_of_two_counts_over_tcp() {
    over_tcp(codec::case_a11_a12_the_first_of_two_counts);
}

#[test]
fn case_a17_a18_fingerprints_over_tcp() {
    over_tcp(codec::case_a17_a18_fingerprints);
}

#[test]
fn case_a19_padding_is_ignored_in_and_zero_out_over_tcp() {
    over_tcp(codec::case_a19_padding_is_ignored_in_and_zero_out);
}

#[test]
fn case_a20_a21_a22_what_a_server_is_never_sent_over_tcp() {
    over_tcp(codec::case_a20_a21_a22_what_a_server_is_never_sent);
}

#[test]
fn case_a24_names_of_odd_bytes_over_tcp() {
    over_tcp(codec::case_a24_names_of_odd_bytes);
}

#[test]
fn case_a25_addresses_of_a_bad_family_or_length_over_tcp() {
    over_tcp(codec::case_a25_addresses_of_a_bad_family_or_length);
}

#[test]
fn rfc_r004_r013_a_binding_reports_its_source_over_tcp() {
    over_tcp(codec::rfc_r004_r013_a_binding_reports_its_source);
}

#[test]
fn rfc_r012_r032_r033_r034_r036_what_every_error_looks_like_over_tcp() {
    over_tcp(codec::rfc_r012_r032_r033_r034_r036_what_every_error_looks_like);
}

#[test]
fn case_a26_no_integrity_is_a_challenge_over_tcp() {
    over_tcp(authentication::case_a26_no_integrity_is_a_challenge);
}

#[test]
fn case_a27_missing_attributes_are_a_bare_400_over_tcp() {
    over_tcp(authentication::case_a27_missing_attributes_are_a_bare_400);
}

#[test]
fn case_a28_integrity_of_a_wrong_length_is_none_over_tcp() {
    over_tcp(authentication::case_a28_integrity_of_a_wrong_length_is_none);
}

#[test]
fn case_a33_a34_nonces_of_others_and_changed_ones_over_tcp() {
    over_tcp(authentication::case_a33_a34_nonces_of_others_and_changed_ones);
}

#[test]
fn case_a37_a38_an_unknown_user_looks_like_a_wrong_password_over_tcp() {
    over_tcp(authentication::case_a37_a38_an_unknown_user_looks_like_a_wrong_password);
}

#[test]
fn case_a13_a14_a15_ignores_attributes_after_integrity_over_tcp() {
    over_tcp(authentication::case_a13_a14_a15_ignores_attributes_after_integrity);
}

#[test]
fn case_a39_a40_another_users_credentials_over_tcp() {
    over_tcp(authentication::case_a39_a40_another_users_credentials);
}

#[test]
fn case_a41_a_captured_request_is_worth_nothing_elsewhere_over_tcp() {
    over_tcp(authentication::case_a41_a_captured_request_is_worth_nothing_elsewhere);
}

#[test]
fn rfc_r029_r053_r057_r059_sha256_from_allocate_to_delete_over_tcp() {
    over_tcp(sha256::rfc_r029_r053_r057_r059_sha256_from_allocate_to_delete);
}

#[test]
fn rfc_r045_r052_case_a26_a37_the_challenge_offers_the_algorithms_over_tcp() {
    over_tcp(sha256::rfc_r045_r052_case_a26_a37_the_challenge_offers_the_algorithms);
}

#[test]
fn case_a16_of_two_codes_sha256_is_verified_over_tcp() {
    over_tcp(sha256::case_a16_of_two_codes_sha256_is_verified);
}

#[test]
fn case_a35_rfc_r049_r050_r051_lists_and_choices_that_do_not_fit_over_tcp() {
    over_tcp(sha256::case_a35_rfc_r049_r050_r051_lists_and_choices_that_do_not_fit);
}

#[test]
fn case_a34_bidding_down_is_438_over_tcp() {
    over_tcp(sha256::case_a34_bidding_down_is_438);
}

#[test]
fn case_a44_transports_over_tcp() {
    over_tcp(allocate::case_a44_transports);
}

#[test]
fn case_a46_a47_attributes_that_exclude_each_other_over_tcp() {
    over_tcp(allocate::case_a46_a47_attributes_that_exclude_each_other);
}

#[test]
fn case_a53_lifetimes_over_tcp() {
    over_tcp(allocate::case_a53_lifetimes);
}

#[test]
fn case_a55_a_retransmission_changes_nothing_over_tcp() {
    over_tcp(allocate::case_a55_a_retransmission_changes_nothing);
}

#[test]
fn case_a58_a59_a60_the_end_of_an_allocation_over_tcp() {
    over_tcp(allocate::case_a58_a59_a60_the_end_of_an_allocation);
}

#[test]
fn rfc_r084_r090_r094_case_a59_both_families_and_then_one_over_tcp() {
    over_tcp(dual::rfc_r084_r090_r094_case_a59_both_families_and_then_one);
}

#[test]
fn case_a61_create_permission_is_all_or_nothing_over_tcp() {
    over_tcp(relaying::case_a61_create_permission_is_all_or_nothing);
}

#[test]
fn case_a65_peer_port_zero_over_tcp() {
    over_tcp(relaying::case_a65_peer_port_zero);
}

#[test]
fn case_a66_channel_numbers_over_tcp() {
    over_tcp(relaying::case_a66_channel_numbers);
}

#[test]
fn case_a68_send_indications_over_tcp() {
    over_tcp(relaying::case_a68_send_indications);
}

#[test]
fn case_a75_two_relayed_clients_over_tcp() {
    over_tcp(relaying::case_a75_two_relayed_clients);
}

#[test]
fn rfc_r098_r104_permissions_end_with_their_allocation_over_tcp() {
    over_tcp(relaying::rfc_r098_r104_permissions_end_with_their_allocation);
}

#[test]
fn rfc_r105_r106_r112_what_a_peer_sees_and_what_it_sends_over_tcp() {
    over_tcp(relaying::rfc_r105_r106_r112_what_a_peer_sees_and_what_it_sends);
}

#[test]
fn rfc_r115_reserved_bits_are_not_looked_at_over_tcp() {
    over_tcp(relaying::rfc_r115_reserved_bits_are_not_looked_at);
}

/// What no datagram could carry to the client, a stream can.
#[test]
fn case_a73_the_largest_datagram_over_tcp() {
    over_tcp(relaying::the_largest_datagram_reaches_a_stream);
}
