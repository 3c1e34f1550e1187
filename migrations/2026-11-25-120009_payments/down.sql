-- Records of money: take an export first.
DROP TABLE payments;
